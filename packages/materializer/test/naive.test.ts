import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readOutput } from "../src/audit/read-output.js";
import { materialize } from "../src/jobs/materialize.js";
import { readNaively } from "./fixtures/naive.js";
import { temporaryDirectory } from "./temporary.js";
import { writeTrajectory } from "./written.js";

describe("the naive baseline of the benchmark", () => {
  it("makes the same arrays as the product, so that the comparison is fair", async () => {
    const root = temporaryDirectory();
    const calls = [
      { prompt: [1, 2, 3], sampled: [10, 11], logprobs: [-0.5, -0.25] },
      { prompt: [1, 2, 3, 10, 11, 4], sampled: [12], logprobs: [-1] },
    ];
    await writeTrajectory(join(root, "trials"), { id: "t", calls });
    const log = join(root, "log.jsonl");
    writeFileSync(
      log,
      calls
        .map(({ prompt, sampled, logprobs }) => JSON.stringify({ prompt_ids: prompt, sampled_ids: sampled, logprobs }))
        .join("\n"),
    );
    await materialize({ paths: [join(root, "trials")], out: join(root, "out.jsonl") });
    for await (const row of readOutput(join(root, "out.jsonl"), "jsonl")) {
      expect(readNaively(log)).toEqual(
        "sample" in row && row.sample
          ? { tokens: row.sample.tokens, loss_mask: row.sample.loss_mask, logprobs: row.sample.logprobs }
          : null,
      );
    }
  });
});
