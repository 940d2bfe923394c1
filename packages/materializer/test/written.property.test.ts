/** Random trajectories through the real engine, writer, reader and every format. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { verifyOutput } from "../src/audit/verify-output.js";
import { materialize } from "../src/jobs/materialize.js";
import { readEvidence } from "../src/read/read.js";
import { loadPolicy } from "../src/recipe/policy.js";
import { callsOf, flags, step } from "./random-calls.js";
import { temporaryDirectory } from "./temporary.js";
import { evidenceOf } from "./trajectories.js";
import { putFile, writeTrajectory } from "./written.js";

const root = temporaryDirectory();
let round = 0;

describe("random trajectories on disk", () => {
  it("come back as they were called, and become outputs that pass every audit, in every format", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 }),
        flags,
        fc.constantFrom("jsonl" as const, "parquet" as const, "msgpack" as const),
        fc.constantFrom(null, 24),
        async (rollouts, given, format, packMaxTokens) => {
          round += 1;
          const job = join(root, `job-${round}`);
          let captured = 0;
          for (const [i, steps] of rollouts.entries()) {
            const calls = callsOf(steps);
            captured += calls.reduce((sum, call) => sum + call.sampled.length, 0);
            putFile(join(job, `t__${i}`, "reward.txt"), String(i % 2));
            const dir = await writeTrajectory(join(job, `t__${i}`), { id: "x".repeat(i + 1), calls });
            const evidence = readEvidence(dir, "x");
            expect(evidence.turns.map((turn) => [turn.damage, [...turn.sampled_ids], turn.call_id])).toEqual(
              evidenceOf(calls).turns.map((turn) => [null, [...turn.sampled_ids], turn.call_id]),
            );
          }
          const out = join(root, `out-${round}.${format}`);
          const pack = packMaxTokens === null ? {} : { packMaxTokens, maxSeqLen: undefined };
          const { manifest } = await materialize({
            paths: [job],
            out,
            policy: loadPolicy(null, { ...given, ...pack }),
          });
          expect(manifest.coverage.captured_tokens).toBe(captured);
          expect((await verifyOutput(out, { inputs: job })).problems).toEqual([]);
          rmSync(job, { recursive: true });
        },
      ),
      { numRuns: 25 },
    );
  });
});
