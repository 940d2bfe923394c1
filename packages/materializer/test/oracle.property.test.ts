/**
 * Random jobs through the product's stages against an oracle that knows the contract only.
 * More by hand: TITO_RUNS=20000 vitest run … oracle.property. A failure prints its seed and the smallest job.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { assembleEvidence } from "../src/build/assemble.js";
import { runsOf } from "../src/find/identity.js";
import type { RunSource } from "../src/find/run-source.js";
import { RowIndex } from "../src/find/side-files.js";
import { parseRows } from "../src/find/side-rows.js";
import { makeRun } from "../src/jobs/make.js";
import { planRuns } from "../src/jobs/plan.js";
import { surveyRun } from "../src/jobs/survey.js";
import { loadPolicy, type Policy } from "../src/recipe/policy.js";
import { Packer } from "../src/write/pack.js";
import type { MadeRun } from "../src/write/rollout-run.js";
import { evidenceByEngine } from "./by-engine.js";
import { type OracleRun, oracleSamples } from "./oracle.js";
import { oracleCredit, oracleExcluded, oraclePack } from "./oracle-credit.js";
import { callsOf, flags, step } from "./random-calls.js";

const RUNS = Number(process.env.TITO_RUNS ?? 150);

const run = fc.record({
  trial: fc.nat(4),
  attempt: fc.constantFrom(1, 1, 2),
  group: fc.constantFrom("g", "g", "h"),
  verdict: fc.constantFrom(null, null, null, "cheated"),
  reward: fc.constantFrom(0, 1, 0.25, -0.5, null),
  turnRewards: fc.option(fc.array(fc.tuple(fc.nat(1), fc.nat(5), fc.constantFrom(0, 0.5, 2)), { maxLength: 6 }), {
    freq: 3,
  }),
  trajectories: fc.array(fc.array(step, { minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 2 }),
  retries: fc.boolean(),
});
const yaml = fc.constantFrom(
  "",
  "select: {lanes: {auxiliary: train, sub_agent: mask}, logprob_missing: token}",
  "select: {undelivered: train, delivery_unknown: train, retry_orphan: train, logprob_not_behaviour: train}",
);
const credit = fc.record({
  credit: fc.constantFrom("none", "grpo", "grpo-no-std", "rloo", "batch-baseline"),
  weight: fc.constantFrom("run", "token"),
  packMaxTokens: fc.constantFrom(undefined, undefined, 30),
});
type Spec = typeof run extends fc.Arbitrary<infer T> ? T : never;

/** Runs of different trial and attempt; a trajectory has one run. */
function jobOf(specs: readonly Spec[]): OracleRun[] {
  const known = new Set<string>();
  return specs.flatMap((spec, i) => {
    const name = `${spec.trial}/${spec.attempt}`;
    if (known.has(name)) return [];
    known.add(name);
    const trajectories = spec.trajectories.map((steps, j) => {
      const calls = callsOf(steps).map((call, at, all) => {
        const base = spec.retries ? all.findIndex((each) => each.prompt.join() === call.prompt.join()) : at;
        return base < at ? { ...call, retryOf: base } : call;
      });
      return { id: `t${i}-${j}`, calls, parents: [] };
    });
    const given = (spec.turnRewards ?? []).filter(([j, turn]) => turn < (trajectories[j]?.calls.length ?? 0));
    const turnRewards = new Map(given.map(([j, turn, reward]) => [`t${i}-${j}/${turn}`, reward]));
    const { attempt, group, verdict, reward } = spec;
    const ids = { run: `r${spec.trial}`, trial: `x${spec.trial}`, attempt, group, reward, trajectories };
    return [{ ...ids, verdict, turnRewards: turnRewards.size > 0 ? turnRewards : null }];
  });
}

function sideFile(rows: object[], kind: "rewards" | "exclusions" | "turn_rewards"): RowIndex {
  return new RowIndex(parseRows(JSON.stringify(rows), "rows.json"), "rows.json", kind);
}

/** The product's stages from trials to made runs, without files. */
function product(job: readonly OracleRun[], policy: Policy): { sources: RunSource[]; made: MadeRun[] } {
  const of = new Map(
    job.flatMap((each) => each.trajectories.map(({ id }) => [`/job/${id}`, each] as [string, OracleRun])),
  );
  const trajectories = job.flatMap((each) => each.trajectories);
  const rows = trajectories.map(({ id }) => ({ trajectory_id: id, of: of.get(`/job/${id}`)! }));
  const files = {
    rewards: sideFile(
      rows.map(({ trajectory_id, of: { reward } }) => ({ trajectory_id, reward })),
      "rewards",
    ),
    exclusions: sideFile(
      rows.flatMap(({ trajectory_id, of: { verdict } }) =>
        verdict === null ? [] : [{ trajectory_id, reason: verdict }],
      ),
      "exclusions",
    ),
    turnRewards: sideFile(
      job.flatMap((each) =>
        [...(each.turnRewards ?? [])].map(([at, reward]) => ({
          trajectory_id: at.split("/")[0],
          turn: Number(at.split("/")[1]),
          reward,
        })),
      ),
      "turn_rewards",
    ),
  };
  const trials = trajectories.map(({ id }) => ({ dir: `/job/${id}`, facts: null, trajectories: [`/job/${id}`] }));
  const sources = runsOf(
    trials,
    (dir) => {
      const { run: run_id, trial: trial_id, group: group_id, attempt } = of.get(dir)!;
      return {
        dir,
        trajectory_id: dir.slice(5),
        identity: { run_id, trial_id, group_id, attempt, metadata: new Map() },
        lived: () => null,
      };
    },
    files,
  );
  const assembled = sources.map((source) => {
    const evidence = source.trajectories.map(({ trajectory_id }, i) => {
      const known = trajectories.find(({ id }) => id === trajectory_id)!;
      const made = evidenceByEngine(trajectory_id, known.calls, i * 1000);
      for (const { parent, turns } of made.segments) known.parents[turns[0]!.turn] = parent && parent.segment - 1;
      return made;
    });
    return assembleEvidence(evidence, policy, 7);
  });
  const surveys = assembled.map((each, i) => surveyRun(each, sources[i]!, { policy, root: "/job" }));
  const runs = planRuns(sources, surveys, policy);
  return {
    sources,
    made: runs.map(({ head, credit: given }, i) => makeRun(assembled[i]!, head, given, { wide: false, policy })),
  };
}

function compare(job: readonly OracleRun[], policy: Policy): void {
  const { made } = product(job, policy);
  const runs = made.map(({ head }) => job.find((each) => each.trajectories[0]!.id === head.trajectory_ids[0])!);
  expect(runs).toHaveLength(job.length);
  const expected = runs.map((each) => each.trajectories.map((trajectory) => oracleSamples(trajectory, policy)));
  const samples = expected.map((each) => each.flatMap((one) => one.samples));
  const credits = oracleCredit(
    runs,
    samples.map((each) => each.reduce((sum, one) => sum + one.trained, 0)),
    policy.credit,
  );
  const packed: { tokens: number[]; trained: number }[] = [];
  for (const [i, { head, samples: have }] of made.entries()) {
    const counts = new Map<string, number>();
    for (const [reason, tokens] of expected[i]!.flatMap((one) => [...one.counts]))
      counts.set(reason, (counts.get(reason) ?? 0) + tokens);
    const { trained = 0, ...masked } = Object.fromEntries(counts);
    expect({ trained: head.coverage.trained_tokens, masked: head.coverage.masked }).toEqual({ trained, masked });
    expect(head.coverage.captured_tokens).toBe([...counts.values()].reduce((a, b) => a + b, 0));
    const { advantages, weight, group } = credits[i]!;
    expect(head.excluded).toBe(oracleExcluded(runs[i]!, runs));
    expect(head.group).toMatchObject(group);
    expect(head.weight).toBeCloseTo(weight, 12);
    expect(
      have.map(({ trajectory_id, tokens, loss_mask }) => ({
        trajectory: trajectory_id,
        tokens: [...tokens],
        mask: [...loss_mask],
      })),
    ).toEqual(samples[i]!.map(({ trajectory, tokens, mask }) => ({ trajectory, tokens, mask })));
    for (const [j, one] of samples[i]!.entries()) {
      const sample = have[j]!;
      expect(sample.weight).toBeCloseTo(trained === 0 ? 0 : (weight * one.trained) / trained, 12);
      compareTokens(runs[i]!, one, sample, advantages);
      packed.push({ tokens: one.tokens, trained: one.trained });
    }
  }
  comparePacking(made, packed, policy);
}

function compareTokens(
  of: OracleRun,
  one: ReturnType<typeof oracleSamples>["samples"][number],
  sample: MadeRun["samples"][number],
  advantages: number[] | null,
) {
  const trajectory = of.trajectories.find(({ id }) => id === one.trajectory)!;
  const before = of.trajectories
    .slice(0, of.trajectories.indexOf(trajectory))
    .reduce((sum, { calls }) => sum + calls.length, 0);
  const actions = sample.spans.filter((span) => span.kind === "action");
  one.turns.forEach((turn, at) => {
    if (turn < 0) return;
    const call = trajectory.calls[turn]!;
    const given =
      call.logprobs === undefined ? -((one.tokens[at]! * 37) % 64) / 64 : call.logprobs![at - call.prompt.length];
    expect(sample.logprobs[at]).toBe(given);
    const span = actions.findIndex(({ start, end }) => start <= at && at < end);
    expect(actions[span]).toMatchObject({ turn, reason: "trained" });
    const advantage = sample.advantage_per_action[span] ?? sample.advantage;
    const due = advantages === null ? null : (advantages[of.turnRewards === null ? 0 : before + turn] ?? null);
    if (due === null) expect(advantage).toBeNull();
    else expect(advantage).toBeCloseTo(due, 9);
  });
}

function comparePacking(
  made: readonly MadeRun[],
  samples: readonly { tokens: number[]; trained: number }[],
  policy: Policy,
): void {
  if (policy.pack.max_tokens === null) return;
  const packer = new Packer({ ...policy.pack, max_tokens: policy.pack.max_tokens });
  const rows = [...made.flatMap((each) => packer.add(each)), ...packer.finish()];
  const training = samples.filter((each) => each.trained > 0).map((each) => each.tokens);
  const expected = oraclePack(
    training.map((each) => each.length),
    policy.pack.max_tokens,
  );
  expect(rows.map((row) => [...row.tokens])).toEqual(expected.map((row) => row.flatMap((i) => training[i]!)));
  for (const row of rows)
    for (const { start, end } of row.parts)
      expect([...row.position_ids.subarray(start, end)]).toEqual(Array.from({ length: end - start }, (_, i) => i));
}

it(
  `${RUNS} random jobs become what the contract says, token by token`,
  () => {
    const property = fc.property(
      fc.array(run, { minLength: 1, maxLength: 5 }),
      flags,
      yaml,
      credit,
      (specs, given, text, credits) => {
        const maxSeqLen = credits.packMaxTokens === undefined ? given.maxSeqLen : undefined;
        const { maxVersionAge, realignMaxLostTokens, split } = given;
        compare(jobOf(specs), loadPolicy(text, { ...credits, maxSeqLen, maxVersionAge, realignMaxLostTokens, split }));
      },
    );
    fc.assert(property, { numRuns: RUNS });
  },
  RUNS * 60 + 60_000,
);
