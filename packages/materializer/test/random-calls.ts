/** Random harnesses: what they call, with all kinds of ill luck, and policies to materialize it with. */
import fc from "fast-check";
import type { PolicyFlags } from "../src/recipe/policy.js";
import type { Call } from "./trajectories.js";

/** Steps of a random harness: go on, branch back, retry, drift inside a reply, start over, with all kinds of ill luck. */
export const step = fc.record({
  kind: fc.constantFrom("extend", "extend", "extend", "branch", "retry", "drift", "fresh"),
  back: fc.nat(6),
  cut: fc.nat(3),
  context: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }),
  sampled: fc.array(fc.integer({ min: 5, max: 9 }), { minLength: 1, maxLength: 5 }),
  luck: fc.constantFrom(
    "good",
    "good",
    "good",
    "aborted",
    "gone",
    "no_logprobs",
    "gap",
    "raw_hot",
    "undelivered",
    "unknown",
    "damaged",
  ),
  lane: fc.constantFrom("main", "main", "sub:a", "aux:title", "compaction"),
  version: fc.integer({ min: 1, max: 7 }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

export function callsOf(steps: Step[]): Call[] {
  const calls: Call[] = [];
  for (const each of steps) {
    const base = calls[Math.max(0, calls.length - 1 - (each.kind === "extend" ? 0 : each.back))];
    calls.push({ prompt: promptOf(each, base), sampled: each.sampled, ...luckOf(each) });
  }
  return calls;
}

function promptOf(each: Step, base: Call | undefined): number[] {
  if (!base || each.kind === "fresh") return each.context;
  if (each.kind === "retry") return base.prompt;
  const kept =
    each.kind === "drift" ? base.sampled.slice(0, Math.max(0, base.sampled.length - 1 - each.cut)) : base.sampled;
  return [...base.prompt, ...kept, ...each.context];
}

function luckOf(each: Step): Partial<Call> {
  const span = [{ version: `v${each.version}`, start: 0, end: each.sampled.length }];
  const common: Partial<Call> = { lane: each.lane as Call["lane"] & string, versions: span };
  const gap = each.sampled.map((_, i) => (i === 0 ? null : -0.5));
  switch (each.luck) {
    case "aborted":
      return { ...common, defects: ["aborted"], finish: "abort" };
    case "gone":
      return { ...common, defects: ["client_gone"], delivery: "failed" };
    case "no_logprobs":
      return { ...common, logprobs: null };
    case "gap":
      return { ...common, logprobs: gap };
    case "raw_hot":
      return { ...common, sampling: { temperature: 0.7 } };
    case "undelivered":
      return { ...common, delivery: "failed" };
    case "unknown":
      return { ...common, delivery: "unknown" };
    case "damaged":
      return { ...common, defects: ["counts_disagree"] };
    default:
      return common;
  }
}

export const flags: fc.Arbitrary<PolicyFlags> = fc.record({
  split: fc.constantFrom(undefined, "segment", "turn"),
  maxSeqLen: fc.constantFrom(undefined, 4, 9, 20),
  realignMaxLostTokens: fc.constantFrom(undefined, 1, 3, 100),
  maxVersionAge: fc.constantFrom(undefined, 0, 2),
});
