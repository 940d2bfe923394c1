/** `tito explain --turn`: where a call was put and why, the first token that differs, and what trains of it. */
import { TitoError } from "@tito/format";
import { selectTurns } from "../build/select.js";
import type { EvidenceTurn, TrajectoryEvidence } from "../read/evidence.js";
import { Lines } from "../read/lines.js";
import { readEvidence } from "../read/read.js";
import { versionNumbers } from "../read/versions.js";
import { loadPolicy, type Policy } from "../recipe/policy.js";
import type { Decode } from "./explain-token.js";
import { whyOf } from "./why.js";

export interface ExplainTurnOptions {
  /** Directory of the trajectory. */
  path: string;
  turn: number;
  policy?: Policy | undefined;
  decode?: Decode | undefined;
  /** Tokens shown on either side of the difference. */
  context?: number | undefined;
}

/** Ids around a place of a line, and their text when they can be decoded. */
export interface Side {
  before: number[];
  from: number[];
  before_text: string | null;
  from_text: string | null;
}

export interface TurnExplanation {
  trajectory_id: string;
  turn: number;
  turns: number;
  call_id: string;
  commit: number | null;
  segment: number;
  file: string;
  offset: number;
  bytes: number;
  lane: string;
  delivery: string;
  finish_reason: string;
  defects: string[];
  damage: string | null;
  prompt_tokens: number;
  sampled_tokens: number;
  cached_tokens: number | null;
  /** Leading prompt ids that an earlier call of the trajectory had: what the engine's cache could have held. */
  expected_prefix_tokens: number;
  decision: string;
  reason: string;
  /** Message-level cause of a drift, and where the messages differ. */
  cause: string | null;
  cause_detail: string | null;
  /** Why the prompt was rendered in full although incremental mode was on. */
  fallback: { reason: string; detail: string } | null;
  /** Turn whose line the prompt is compared with, null when there is none. */
  against_turn: number | null;
  match_tokens: number;
  /** Tokens of the earlier line that this prompt does not contain, sampled ones among them. */
  lost_tokens: number;
  lost_sampled_tokens: number;
  /** Null when the earlier line is wholly contained in the prompt. */
  difference: { at: number; expected: Side; actual: Side } | null;
  verdicts: { start: number; end: number; reason: string; why: string }[];
}

const CONTEXT_TOKENS = 12;

/** Errors: `not_found` for a turn that does not exist. */
export function explainTurn(options: ExplainTurnOptions): TurnExplanation {
  const policy = options.policy ?? loadPolicy(null);
  const evidence = readEvidence(options.path, options.path, policy.lane_rules);
  const turn = evidence.turns[options.turn];
  if (!turn) throw new TitoError("not_found", `${options.path} has ${evidence.turns.length} turns, counted from 0`);
  const against = againstTurn(evidence, turn);
  const versions = evidence.turns.flatMap((each) =>
    each.weight_versions.flatMap((span) => versionNumbers(span.version)?.newest ?? []),
  );
  const newest = versions.length > 0 ? versions.reduce((a, b) => Math.max(a, b)) : null;
  const verdicts = selectTurns(evidence, {
    policy: policy.select,
    newestVersion: policy.select.current_version ?? newest,
  });
  const { call_id, commit, segment, file, offset, bytes, lane, delivery, finish_reason, decision } = turn;
  return {
    trajectory_id: evidence.trajectory_id,
    turn: turn.turn,
    turns: evidence.turns.length,
    ...{ call_id, commit, segment, file, offset, bytes, lane, delivery, finish_reason },
    defects: [...turn.defects],
    damage: turn.damage,
    prompt_tokens: turn.prompt_keep + turn.prompt_suffix.length,
    sampled_tokens: turn.sampled_ids.length,
    cached_tokens: turn.usage.cached_tokens,
    expected_prefix_tokens: decision.evidence.match_tokens,
    decision: decision.kind,
    reason: decision.reason,
    cause: decision.evidence.cause,
    cause_detail: decision.evidence.cause_detail,
    fallback: decision.evidence.fallback ?? null,
    against_turn: against?.turn ?? null,
    ...compare(evidence, { turn, against }, options),
    verdicts: verdicts[turn.turn]!.map(({ start, end, reason }) => ({
      start,
      end,
      reason: reason ?? "trained",
      why: whyOf(turn, reason ?? "trained", policy),
    })),
  };
}

/** The call that the engine compared with, else the last call of the segment that this one branched from. */
function againstTurn(evidence: TrajectoryEvidence, turn: EvidenceTurn): EvidenceTurn | null {
  const named = turn.decision.evidence.against_call_id;
  const found = named == null ? undefined : evidence.turns.find((each) => each.call_id === named);
  if (found) return found;
  const segment = evidence.segments.find((each) => each.segment === turn.segment)!;
  const earlier = segment.turns.filter((each) => each.turn < turn.turn);
  if (earlier.length > 0) return earlier.at(-1)!;
  const parent = evidence.segments.find((each) => each.segment === segment.parent?.segment);
  return parent?.turns.filter((each) => each.turn < turn.turn).at(-1) ?? null;
}

function compare(
  evidence: TrajectoryEvidence,
  pair: { turn: EvidenceTurn; against: EvidenceTurn | null },
  options: ExplainTurnOptions,
): Pick<TurnExplanation, "match_tokens" | "lost_tokens" | "lost_sampled_tokens" | "difference"> {
  const { turn, against } = pair;
  const nothing = { lost_tokens: 0, lost_sampled_tokens: 0, difference: null };
  if (against === null || against.damage !== null || turn.damage !== null) {
    return { match_tokens: turn.decision.evidence.match_tokens, ...nothing };
  }
  const lines = new Lines(evidence);
  const before = checkpointOf(lines, against);
  const prompt = checkpointOf(lines, turn).slice(0, turn.prompt_keep + turn.prompt_suffix.length);
  let at = 0;
  while (at < before.length && at < prompt.length && before[at] === prompt[at]) at += 1;
  if (at === before.length) return { match_tokens: at, ...nothing };
  const context = options.context ?? CONTEXT_TOKENS;
  const side = (ids: Int32Array) => sideOf(ids, { at, context, decode: options.decode });
  return {
    match_tokens: at,
    lost_tokens: before.length - at,
    lost_sampled_tokens: Math.min(against.sampled_ids.length, before.length - at),
    difference: { at, expected: side(before), actual: side(prompt) },
  };
}

/** Prompt and sampled ids of a turn. Turns on one line do not overwrite each other, so the final line holds them. */
function checkpointOf(lines: Lines, turn: EvidenceTurn): Int32Array {
  const length = turn.prompt_keep + turn.prompt_suffix.length + turn.sampled_ids.length;
  const ids = new Int32Array(length);
  ids.set(lines.of(turn.segment).tokens.subarray(0, turn.prompt_keep));
  ids.set(turn.prompt_suffix, turn.prompt_keep);
  ids.set(turn.sampled_ids, turn.prompt_keep + turn.prompt_suffix.length);
  return ids;
}

function sideOf(ids: Int32Array, at: { at: number; context: number; decode: Decode | undefined }): Side {
  const before = ids.slice(Math.max(0, at.at - at.context), at.at);
  const from = ids.slice(at.at, at.at + at.context);
  const text = (part: Int32Array) => (at.decode ? at.decode(part) : null);
  return { before: [...before], from: [...from], before_text: text(before), from_text: text(from) };
}
