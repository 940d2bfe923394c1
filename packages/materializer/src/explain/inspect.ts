/** What one trajectory holds, as plain rows: for `tito inspect`. Reads, counts, and decides nothing. */
import { type DriftReport, driftReport } from "@tito/continuity";
import {
  danglingCalls,
  type Lane,
  type LoggedTurn,
  readTrajectory,
  rebuildLines,
  type TrajectoryLog,
} from "@tito/format";
import { assembleEvidence } from "../build/assemble.js";
import { type ContinuityFigures, continuityFigures } from "../build/continuity-figures.js";
import { type SideCallSuspect, sideCallSuspects } from "../build/side-calls.js";
import { type CaptureLoss, captureLosses } from "../read/capture-loss.js";
import { readEvidence } from "../read/read.js";
import { type ToolUse, toolUseOf, toolWarning } from "../read/tool-use.js";
import type { VolatileCost } from "../read/volatile-text.js";
import { loadPolicy, type Policy } from "../recipe/policy.js";

export interface InspectedTurn {
  turn: number;
  segment: number;
  lane: string;
  decision: string;
  reason: string;
  cause: string | null;
  /** Null when the prompt cannot be rebuilt. */
  prompt_tokens: number | null;
  /** Ids of the prompt that its segment already held. */
  kept_tokens: number;
  sampled_tokens: number;
  /** Prompt tokens that the engine had in its cache, as it told; beside what an earlier call left there. */
  cached_tokens: number | null;
  expected_prefix_tokens: number;
  finish_reason: string;
  delivery: string;
  /** Defects, malformed output, prompt ids that do not have the recorded digest. Empty: a whole turn. */
  flags: string[];
}

export interface InspectedSegment {
  segment: number;
  parent: string;
  turns: number;
  line_tokens: number | null;
  sampled_tokens: number;
  opened_by: string;
  state: "sealed" | "parked" | "open";
}

export interface Inspection {
  trajectory_id: string;
  dir: string;
  status: string;
  reasons: string[];
  sealed: boolean;
  boots: number;
  calls: number;
  uncaptured: Record<string, number>;
  /** What the last call without ids was told. */
  last_uncaptured: { reason: string; status: number | null; detail: string } | null;
  dangling_calls: number;
  replays: number;
  tool_use: ToolUse;
  /** Set when tools were offered and no call was parsed. */
  warning: string | null;
  gaps: { reason: string; file: string; detail: string }[];
  segments: InspectedSegment[];
  turns: InspectedTurn[];
  /** The two figures of docs/continuity.md, what was lost, what looks like a side call and trains, under the default policy. */
  continuity: ContinuityFigures;
  capture_loss: CaptureLoss[];
  side_call_suspects: SideCallSuspect[];
  volatile_text: VolatileCost[];
  drift: {
    reasons: Record<string, number>;
    causes: Record<string, DriftReport["causes"] extends Map<string, infer C> ? C : never>;
  };
}

/** @throws TitoError `not_found` when `dir` holds no trajectory. */
export function inspectTrajectory(dir: string, policy: Policy = loadPolicy(null)): Inspection {
  const log = readTrajectory(dir, { mode: "salvage" });
  const lines = rebuildLines(log);
  const { lanes, ...findings } = inspectFindings(dir, policy);
  const turns = lines.turns.map((logged, turn) =>
    inspectTurn(log, logged, {
      turn,
      lane: lanes[turn]!,
      promptTokens: lines.promptLength(logged),
      status: lines.statusOf(logged),
    }),
  );
  const report = driftReport(
    lines.turns.map((logged, index) => ({
      decision: logged.record.decision,
      prompt_tokens: turns[index]!.prompt_tokens ?? 0,
    })),
  );
  const uncaptured = new Map<string, number>();
  const last = log.uncaptured.at(-1);
  const tool_use = toolUseOf(
    lines.turns.map((logged, turn) => ({
      lane: lanes[turn]!,
      message: logged.record.message,
      tools_offered: (lines.tools(logged) ?? []).length > 0,
    })),
  );
  for (const record of log.uncaptured) uncaptured.set(record.reason, (uncaptured.get(record.reason) ?? 0) + 1);
  return {
    trajectory_id: log.trajectory_id,
    dir,
    status: log.manifest?.status ?? "not sealed",
    reasons: log.manifest?.reasons ?? [],
    sealed: log.complete,
    boots: log.journals.length,
    calls: log.intents.size,
    uncaptured: Object.fromEntries(uncaptured),
    last_uncaptured: last === undefined ? null : { reason: last.reason, status: last.status, detail: last.detail },
    dangling_calls: danglingCalls(log).length,
    replays: log.replays.length,
    tool_use,
    warning: toolWarning([{ run_id: log.trajectory_id, use: tool_use }]),
    gaps: log.gaps.map(({ reason, file, detail }) => ({ reason, file, detail })),
    segments: log.segments.map((segment) => inspectSegment(segment, lines.lineLength(segment.segment))),
    turns,
    ...findings,
    drift: { reasons: Object.fromEntries(report.reasons), causes: Object.fromEntries(report.causes) },
  };
}

/** What selection makes of the trajectory, for what only shows there. */
function inspectFindings(dir: string, policy: Policy) {
  const evidence = readEvidence(dir, dir, policy.lane_rules);
  const assembled = assembleEvidence([evidence], policy, null).trajectories[0]!;
  return {
    continuity: continuityFigures(assembled),
    capture_loss: captureLosses([evidence]),
    side_call_suspects: sideCallSuspects(assembled),
    volatile_text: evidence.volatile,
    lanes: evidence.turns.map((turn) => turn.lane),
  };
}

function inspectTurn(
  log: TrajectoryLog,
  { record, segment }: LoggedTurn,
  known: { turn: number; lane: Lane; promptTokens: number | null; status: string },
): InspectedTurn {
  const deliveries = log.deliveries.get(record.call_id) ?? [];
  return {
    turn: known.turn,
    segment,
    lane: known.lane,
    decision: record.decision.kind,
    reason: record.decision.reason,
    cause: record.decision.evidence.cause,
    prompt_tokens: known.promptTokens,
    kept_tokens: record.prompt_keep,
    sampled_tokens: record.sampled_ids.length,
    cached_tokens: record.usage.cached_tokens,
    expected_prefix_tokens: record.decision.evidence.match_tokens,
    finish_reason: record.finish_reason,
    delivery: deliveries.some((one) => one.outcome === "delivered")
      ? "delivered"
      : (deliveries.at(-1)?.outcome ?? "unknown"),
    flags: [
      ...record.defects,
      ...(record.malformed ? ["malformed"] : []),
      ...(record.special_text_escaped ? ["special_text_escaped"] : []),
      ...(known.status === "exact" ? [] : [known.status]),
    ],
  };
}

function inspectSegment(segment: TrajectoryLog["segments"][number], lineTokens: number | null): InspectedSegment {
  const { parent, continues } = segment.header;
  return {
    segment: segment.segment,
    parent:
      continues !== null
        ? `continues ${continues.segment} (${continues.why})`
        : parent === null
          ? ""
          : `${parent.segment}, first ${parent.tokens} ids`,
    turns: segment.turns.length,
    line_tokens: lineTokens,
    sampled_tokens: segment.turns.reduce((sum, turn) => sum + turn.record.sampled_ids.length, 0),
    opened_by: segment.turns[0]?.record.decision.reason ?? "",
    state: segment.sealed ? "sealed" : segment.parked ? "parked" : "open",
  };
}
