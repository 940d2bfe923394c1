/**
 * Turns that look like side calls (titles, summaries, probes) and yet train, because no rule names them. Nothing is masked for it: it is told,
 * with what to look at, so that a rule can be written. Pure.
 */
import type { Prologue } from "@tito/continuity";
import type { EvidenceTurn, TrajectoryEvidence } from "../read/evidence.js";
import type { AssembledTrajectory } from "./assemble.js";

export interface SideCallSuspect {
  turn: number;
  lane: string;
  trained_tokens: number;
  /** What makes it look like one. */
  signs: string[];
}

/** An output limit up to this is that of a title, a label or a probe. */
const SMALL_LIMIT = 256;

export function sideCallSuspects({ evidence, built }: AssembledTrajectory): SideCallSuspect[] {
  const trained = new Map<number, number>();
  for (const sample of built.samples)
    for (const span of sample.spans)
      if (span.reason === "trained")
        trained.set(span.turn.turn, (trained.get(span.turn.turn) ?? 0) + span.end - span.start);
  const scene = sceneOf(evidence);
  return evidence.turns.flatMap((turn) => {
    const tokens = trained.get(turn.turn) ?? 0;
    const signs = tokens === 0 || !isAgentLane(turn) ? [] : signsOf(turn, scene);
    return signs.length === 0 ? [] : [{ turn: turn.turn, lane: turn.lane, trained_tokens: tokens, signs }];
  });
}

const isAgentLane = (turn: EvidenceTurn): boolean => turn.lane === "main" || turn.lane.startsWith("sub:");

/** What the conversation of a trajectory is like, against which a side call stands out. */
interface Scene {
  tools: boolean;
  /** The system text of most turns. */
  system: string;
  /** Some agent turn has no limit, or a large one. */
  largeLimits: boolean;
  alone: ReadonlySet<number>;
}

function sceneOf(evidence: TrajectoryEvidence): Scene {
  const agents = evidence.turns.filter(isAgentLane);
  const systems = new Map<string, number>();
  for (const { request } of agents)
    systems.set(request.prologue.system, (systems.get(request.prologue.system) ?? 0) + 1);
  const [system] = [...systems].reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0]);
  return {
    tools: agents.some((turn) => turn.tools_offered),
    system,
    largeLimits: agents.some(({ request }) => request.max_tokens === null || request.max_tokens > SMALL_LIMIT),
    alone: aloneTurns(evidence),
  };
}

/** Turns that continue nothing and that nothing continues: the only one of their segment, and of their conversation. */
function aloneTurns(evidence: TrajectoryEvidence): Set<number> {
  const continued = new Set(evidence.turns.flatMap((turn) => turn.decision.evidence.against_call_id ?? []));
  const conversations = new Map<Prologue, number>();
  for (const { request } of evidence.turns)
    conversations.set(request.prologue, (conversations.get(request.prologue) ?? 0) + 1);
  const parents = new Set(evidence.segments.flatMap((segment) => segment.parent?.segment ?? []));
  return new Set(
    evidence.segments
      .filter((segment) => segment.turns.length === 1 && !parents.has(segment.segment))
      .map((segment) => segment.turns[0]!)
      .filter((turn) => !continued.has(turn.call_id) && !continuesEarlier(turn))
      .filter((turn) => conversations.get(turn.request.prologue) === 1)
      .map((turn) => turn.turn),
  );
}

/** The same request asked twice continues nothing. */
function continuesEarlier({ decision }: EvidenceTurn): boolean {
  return decision.evidence.against_call_id != null && decision.reason !== "identical_prompt";
}

function signsOf(turn: EvidenceTurn, scene: Scene): string[] {
  const { request } = turn;
  const alone = scene.alone.has(turn.turn);
  const noTools = scene.tools && !turn.tools_offered;
  const small = scene.largeLimits && request.max_tokens !== null && request.max_tokens <= SMALL_LIMIT;
  // A sub-agent that a header names, and one that has tools, is no side call for having a prompt of its own.
  const other = request.prologue.system !== scene.system && !turn.tools_offered;
  if (!noTools && !(alone && (small || other))) return [];
  return [
    ...(noTools ? ["no tools offered while the agent's other calls offer some"] : []),
    ...(small ? [`an output limit of ${request.max_tokens}`] : []),
    ...(other ? ["another system text than most calls"] : []),
    ...(alone ? ["a single call that nothing continues"] : []),
  ];
}
