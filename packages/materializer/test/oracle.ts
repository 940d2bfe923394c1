/**
 * Samples in the plainest and slowest form, from the contract alone: whole lists of ids, no segments of the product but the parent where several
 * lines share a match. The oracle for select, build, coverage, weights, credit and packing.
 */
import type { Policy } from "../src/recipe/policy.js";
import type { Call } from "./trajectories.js";

export interface OracleRun {
  run: string;
  trial: string;
  attempt: number;
  group: string;
  verdict: string | null;
  reward: number | null;
  /** By trajectory and turn. */
  turnRewards: Map<string, number> | null;
  trajectories: { id: string; calls: Call[]; parents: (number | null)[] }[];
}

export interface OracleSample {
  trajectory: string;
  tokens: number[];
  mask: number[];
  /** By token: the turn that trains it, −1 elsewhere. */
  turns: number[];
  trained: number;
}

type Ids = readonly number[];
const startsWith = (long: Ids, short: Ids) => short.length <= long.length && short.every((id, i) => id === long[i]);
const whole = (call: Call) => [...call.prompt, ...call.sampled];
const common = (a: Ids, b: Ids) => {
  const at = a.findIndex((id, i) => id !== b[i]);
  return at < 0 ? a.length : at;
};

/** Segment of every call, by contracts §2. */
function segmentsOf(calls: readonly Call[]): number[] {
  const segments: number[] = [];
  calls.forEach((call, now) => {
    const winner = picked(calls, now, call.prompt);
    const isTip = winner >= 0 && segments.lastIndexOf(segments[winner]!) === winner;
    segments.push(isTip ? segments[winner]! : Math.max(-1, ...segments) + 1);
  });
  return segments;
}

/** The call before `now` whose checkpoint a prompt continues, −1: none. */
function picked(calls: readonly Call[], now: number, prompt: Ids): number {
  const delivered = (i: number) => Number((calls[i]!.delivery ?? "delivered") === "delivered");
  return calls
    .map((_, i) => i)
    .filter((i) => i < now && (calls[i]!.defects ?? []).length === 0 && startsWith(prompt, whole(calls[i]!)))
    .reduce((best, i) => {
      if (best < 0) return i;
      const longer = whole(calls[i]!).length - whole(calls[best]!).length || delivered(i) - delivered(best);
      return longer >= 0 ? i : best;
    }, -1);
}

/** Why a sampled token does not train, null when it does: contracts §5, first match. */
function reasonOf(calls: readonly Call[], at: number, index: number, policy: Policy["select"], contained: boolean) {
  const call = calls[at]!;
  const defects = call.defects ?? [];
  const logprobs = call.logprobs === null ? call.sampled.map(() => null) : (call.logprobs ?? call.sampled.map(() => 0));
  const missing = logprobs.filter((value) => value === null).length;
  if (defects.some((defect) => !["aborted", "client_gone"].includes(defect))) return "capture_damage";
  if (missing === logprobs.length || (missing > 0 && policy.logprob_missing === "turn")) return "logprob_missing";
  const neutral = call.sampling === undefined || call.sampling.temperature === 1;
  if (!neutral && policy.logprob_not_behaviour === "mask") return "logprob_not_behaviour";
  if (defects.includes("client_gone")) return "client_gone";
  if (defects.includes("aborted")) return "aborted";
  const delivery = call.delivery ?? "delivered";
  const repeated = calls.some(
    (later, i) =>
      i > at && later.prompt.join() === call.prompt.join() && (later.retryOf !== undefined || delivery !== "delivered"),
  );
  if (!contained && repeated && policy.retry_orphan === "mask") return "retry_orphan";
  if (!contained && delivery === "failed" && policy.undelivered === "mask") return "undelivered";
  if (!contained && delivery === "unknown" && policy.delivery_unknown === "mask") return "delivery_unknown";
  const lane = call.lane ?? "main";
  if (lane.startsWith("aux:") && policy.lanes.auxiliary === "mask") return "auxiliary";
  if (lane.startsWith("sub:") && policy.lanes.sub_agent === "mask") return "sub_agent";
  const age = 7 - Number(call.versions?.[0]?.version.slice(1) ?? 7);
  if (logprobs[index] === null) return "logprob_missing";
  return policy.max_version_age !== null && age > policy.max_version_age ? "stale_version" : null;
}

/** Samples of a trajectory, and its sampled tokens by what became of them. */
export function oracleSamples(given: OracleRun["trajectories"][number], policy: Policy) {
  const { id, calls, parents } = given;
  const segments = segmentsOf(calls);
  const own = (segment: number) => calls.map((_, i) => i).filter((i) => segments[i] === segment);
  const numbers = [...new Set(segments)];
  const last = (segment: number) => own(segment).at(-1)!;
  const { max_seq_len: max, split, realign_max_lost_tokens: bound } = policy.build;
  const fits = (i: number) => max === null || whole(calls[i]!).length <= max;
  const parent = (segment: number) => parents[own(segment)[0]!]!;
  /** What a segment shares with its parent's line as it was then. */
  const match = (segment: number) => {
    const first = own(segment)[0]!;
    const matches = calls.slice(0, first).map((_, i) => common(calls[first]!.prompt, whole(calls[i]!)));
    const longest = Math.max(0, ...matches);
    const lines = segments.slice(0, first).filter((_, i) => matches[i] === longest);
    if (longest > 0 && !lines.includes(parent(segment)!))
      throw new Error(`the parent of ${segment} shares less than others`);
    return longest;
  };
  const children = (segment: number) => numbers.filter((each) => parent(each) === segment);
  /** The segment that a segment becomes one sample with, −1: none. */
  const joined = (segment: number): number => {
    const tail = calls[last(segment)]!;
    const longest = Math.max(-1, ...children(segment).map(match));
    const inside = longest > tail.prompt.length && longest < whole(tail).length;
    if (split === "turn" || !inside || whole(tail).length - longest > bound) return -1;
    return children(segment).find((each) => match(each) === longest && fits(own(each)[0]!)) ?? -1;
  };
  const joins = new Map(numbers.map((each) => [each, joined(each)]));
  /** Turns whose sampled ids stand on a segment's line up to a turn, with how many of them. */
  const shownOn = (segment: number, limit: number): { turn: number; tokens: number }[] => {
    const inherited = parent(segment) === null ? [] : shownOn(parent(segment)!, Math.min(limit, match(segment)));
    const mine = own(segment).map((turn) => {
      const room = Math.max(0, limit - calls[turn]!.prompt.length);
      return { turn, tokens: Math.min(room, calls[turn]!.sampled.length) };
    });
    return [...inherited, ...mine].filter((each) => each.tokens > 0);
  };
  /** A later prompt goes on behind all that this turn sampled. */
  const isContained = (turn: number) =>
    calls.some((later, i) => {
      if (i <= turn) return false;
      const shown = shownOn(segments[i]!, later.prompt.length).find((each) => each.turn === turn);
      return shown?.tokens === calls[turn]!.sampled.length;
    });
  const contained = calls.map((_, turn) => isContained(turn));
  const reason = (turn: number, index: number) => reasonOf(calls, turn, index, policy.select, contained[turn]!);
  const cuts = numbers
    .filter((segment) => joins.get(segment) === -1)
    .flatMap((segment) => {
      let chain = [segment];
      for (let up = numbers.find((each) => joins.get(each) === segment); up !== undefined; ) {
        chain = [up, ...chain];
        const head: number = up;
        up = numbers.find((each) => joins.get(each) === head);
      }
      const whole = chain.flatMap(own).filter(fits);
      if (split === "turn") return whole.map((turn) => ({ segment, first: turn, end: turn }));
      return whole.length === 0 ? [] : [{ segment, first: whole[0]!, end: whole.at(-1)! }];
    })
    .sort((a, b) => a.first - b.first);
  const counts = new Map<string, number>();
  const count = (reason: string, tokens = 1) => counts.set(reason, (counts.get(reason) ?? 0) + tokens);
  const seen = new Set<string>();
  const samples = cuts.map(({ segment, end }): OracleSample => {
    const tokens = whole(calls[end]!);
    const turns = tokens.map(() => -1);
    for (const shown of shownOn(segment, tokens.length)) {
      for (let i = 0; i < shown.tokens; i += 1) {
        if (seen.has(`${shown.turn}/${i}`)) continue;
        seen.add(`${shown.turn}/${i}`);
        const masked = reason(shown.turn, i);
        count(masked ?? "trained");
        if (masked === null) turns[calls[shown.turn]!.prompt.length + i] = shown.turn;
      }
    }
    const mask = turns.map((turn) => Number(turn >= 0));
    return { trajectory: id, tokens, mask, turns, trained: mask.filter((each) => each === 1).length };
  });
  calls.forEach((call, turn) => {
    const overwritten = joins.get(segments[turn]!) !== -1 && last(segments[turn]!) === turn;
    call.sampled.forEach((_, i) => {
      const outside = overwritten ? "realign_overwritten" : "max_seq_len";
      if (!seen.has(`${turn}/${i}`)) count(reason(turn, i) ?? outside);
    });
  });
  return { samples, counts };
}
