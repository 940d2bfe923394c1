/** What a row says of its turns: settings, and which weights made which of its tokens. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { type RolloutRun, rolloutRunSchema } from "../../src/write/rollout-run.js";
import { temporaryDirectory } from "../temporary.js";

const job = resolve(import.meta.dirname, "../../../../fixtures/trajectories/job-1");
const root = temporaryDirectory();

async function runs(policy: string | null): Promise<RolloutRun[]> {
  const out = join(root, `${Math.abs(hash(policy ?? ""))}.jsonl`);
  await materialize({ paths: [job], out, policy: loadPolicy(policy) });
  const lines = readFileSync(out, "utf8").trim().split("\n");
  return lines.map((line) => rolloutRunSchema.parse(JSON.parse(line)));
}
const hash = (text: string) => [...text].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) | 0, 7);

describe("a sample's turns", () => {
  it.each(["build: {split: segment}", "build: {split: turn}"])(
    "cover its action spans with versions, under %s",
    async (policy) => {
      let seen = 0;
      for (const { samples } of await runs(policy)) {
        for (const { spans, turns, version_min, version_max, loss_mask } of samples) {
          const actions = spans.filter((span) => span.kind === "action");
          expect(turns.map(({ turn }) => turn)).toEqual([...new Set(actions.map(({ turn }) => turn))]);
          for (const { turn, weight_versions } of turns) {
            const own = actions.filter((span) => span.turn === turn);
            expect(weight_versions[0]!.start).toBe(own[0]!.start);
            expect(weight_versions.at(-1)!.end).toBe(own.at(-1)!.end);
            for (const [i, span] of weight_versions.entries())
              expect(span.start).toBe(i === 0 ? own[0]!.start : weight_versions[i - 1]!.end);
            seen += 1;
          }
          const numbers = turns.flatMap(({ weight_versions }) =>
            weight_versions
              .filter(({ start, end }) => loss_mask.slice(start, end).includes(1))
              .map(({ number }) => number),
          );
          const known = numbers.length > 0 && !numbers.includes(null);
          expect([version_min, version_max]).toEqual(
            known ? [Math.min(...(numbers as number[])), Math.max(...(numbers as number[]))] : [null, null],
          );
        }
      }
      expect(seen).toBeGreaterThan(5);
    },
  );

  it("say the settings of the record, those that the user states, and null for what nobody states", async () => {
    const turns = (await runs(null)).flatMap(({ samples }) => samples.flatMap((sample) => sample.turns));
    expect(turns.some(({ temperature }) => temperature === 1)).toBe(true);
    expect(turns.every(({ presence_penalty }) => presence_penalty === null || presence_penalty === 0)).toBe(true);
    const stated = await runs("select: {sampling_defaults: {min_p: 0.25}}");
    const later = stated.flatMap(({ samples }) => samples.flatMap((sample) => sample.turns));
    for (const [i, turn] of turns.entries()) expect(later[i]!.min_p).toBe(turn.min_p ?? 0.25);
  });
});

describe("log probabilities", () => {
  it("are float32 unless float64 is asked for, and the manifest counts what was rounded", async () => {
    const policy = (logprobs: string) => loadPolicy(`output: {logprobs: ${logprobs}}`);
    const narrow = await materialize({ paths: [job], out: join(root, "n.msgpack"), policy: policy("float32") });
    const wide = await materialize({ paths: [job], out: join(root, "w.msgpack"), policy: policy("float64") });
    expect(narrow.manifest.logprobs_rounded).toBeGreaterThan(0);
    expect([narrow.manifest.wide_logprobs, wide.manifest.wide_logprobs, wide.manifest.logprobs_rounded]).toEqual([
      false,
      true,
      0,
    ]);
    const dtypes = (file: string) => new Set(readFileSync(join(root, file), "latin1").match(/<f[48]/g));
    expect([dtypes("n.msgpack"), dtypes("w.msgpack")]).toEqual([new Set(["<f4"]), new Set(["<f8"])]);
  });
});
