import { readFileSync } from "node:fs";
import { join } from "node:path";
import { verifyTrajectory } from "@tito/format";
import { expect, it } from "vitest";
import { materialize } from "../../src/jobs/materialize.js";
import type { RolloutRun } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";
import { putFile, writeTrajectory } from "../written.js";

const calls = [
  { prompt: [1], sampled: [10, 11] },
  { prompt: [1, 10, 11, 2], sampled: [12, 13] },
];

async function runOf(root: string): Promise<RolloutRun> {
  const out = join(temporaryDirectory(), "out.jsonl");
  await materialize({ paths: [root], out });
  return JSON.parse(readFileSync(out, "utf8").trim()) as RolloutRun;
}

it("O.134 a sampled id that is not the one in a later prompt's digest keeps its run out of training, whatever else agrees", async () => {
  const honest = temporaryDirectory();
  putFile(join(honest, "trial", "reward.json"), 1);
  await writeTrajectory(join(honest, "trial"), { id: "a", calls });
  expect(await runOf(honest)).toMatchObject({ excluded: null, weight: 1 });
  const forged = temporaryDirectory();
  putFile(join(forged, "trial", "reward.json"), 1);
  // the policy sampled 99; 10 was put in its place, and every frame, chain, commit and seal agrees with that
  const dir = await writeTrajectory(join(forged, "trial"), { id: "a", calls, sha256Of: { 1: [1, 99, 11, 2] } });
  expect(verifyTrajectory(dir).findings.map(({ code }) => code)).toEqual(["prompt_mismatch"]);
  expect(await runOf(forged)).toMatchObject({
    excluded: "capture_tampered",
    weight: 0,
    termination: "capture_incomplete",
  });
});
