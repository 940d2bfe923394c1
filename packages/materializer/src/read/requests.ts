/** What the requests of a trajectory looked like, and which lane each belongs to under a user's own rules. Pure. */
import {
  classifyLane,
  detectHarness,
  type LaneInput,
  type LaneVerdict,
  laneByRules,
  type Prologue,
  prologueOf,
} from "@tito/continuity";
import type { Lane, LoggedTurn, Lines as RecordedLines, TrajectoryLog } from "@tito/format";
import { type LaneRules, rulesFor } from "../recipe/lane-rules.js";

/** The traits of a request by which a side call is recognised. */
export interface RequestFacts {
  messages: number;
  /** The output limit that the engine was given, null without one. */
  max_tokens: number | null;
  /** How its conversation begins; shared by all requests of a conversation. */
  prologue: Prologue;
}

/** Facts of every turn. A request repeats most of an earlier one, so that its beginning is looked at only where it is new. */
export function requestFacts(lines: RecordedLines): Map<LoggedTurn, RequestFacts> {
  const facts = new Map<LoggedTurn, RequestFacts>();
  /** Leading messages that make the prologue: up to the first user message. */
  const lengths = new Map<Prologue, number>();
  for (const turn of lines.turns) {
    const { messages_keep: keep, messages_new: added, sampling } = turn.record;
    const base = keep === 0 ? null : lines.base(turn);
    const inherited = base === null ? undefined : facts.get(base)?.prologue;
    let prologue = inherited;
    if (prologue === undefined || lengths.get(prologue)! > keep) {
      const messages = keep === 0 ? added : (lines.messages(turn) ?? added);
      const user = messages.findIndex((message) => message.role === "user");
      prologue = prologueOf(messages);
      lengths.set(prologue, user < 0 ? Number.POSITIVE_INFINITY : user + 1);
    }
    const limit = sampling.max_tokens;
    facts.set(turn, {
      messages: keep + added.length,
      max_tokens: typeof limit === "number" ? limit : null,
      prologue,
    });
  }
  return facts;
}

/**
 * Lanes by a user's rules, then by those that shipped, as if the recorder had known both. A later call is judged by what earlier ones
 * turned out to be, so that a title call that was taken for the main conversation no longer makes a sub-agent of it.
 * Lanes that a log names itself stay, unless a rule of the user names the call.
 */
export function lanesByRules(
  log: TrajectoryLog,
  lines: RecordedLines,
  sets: readonly LaneRules[],
): Map<LoggedTurn, LaneVerdict> {
  const verdicts = new Map<LoggedTurn, LaneVerdict>();
  const laneOfCall = new Map<string, Lane>();
  const harness = harnessOf(log);
  let main: Prologue | null = null;
  for (const turn of lines.turns) {
    const { record } = turn;
    const intent = log.intents.get(record.call_id);
    const header = (name: string): string | undefined => intent?.headers[name];
    const messages = lines.messages(turn) ?? record.messages_new;
    const limit = record.sampling.max_tokens;
    const input: LaneInput = {
      header,
      path: intent?.path ?? "",
      messages,
      tools: (lines.tools(turn) ?? []).length,
      max_tokens: typeof limit === "number" ? limit : null,
      laneOfCall: (id) => laneOfCall.get(id),
      main,
    };
    const own = rulesFor(sets, header("user-agent"));
    const named = record.lane_evidence.rule.startsWith("import/");
    const recorded = { lane: record.lane, evidence: record.lane_evidence };
    const verdict = named
      ? (laneByRules(input, own) ?? recorded)
      : classifyLane(input, detectHarness(harness, header), own);
    verdicts.set(turn, verdict);
    for (const call of record.message.tool_calls ?? []) laneOfCall.set(call.id, verdict.lane);
    if (verdict.lane === "main") main = prologueOf(messages);
  }
  return verdicts;
}

/** The harness that the recorder was told of. */
function harnessOf(log: TrajectoryLog): string | null {
  try {
    const config = JSON.parse(log.journals[0]?.header?.config_json ?? "{}") as { harness?: unknown };
    return typeof config.harness === "string" ? config.harness : null;
  } catch {
    return null;
  }
}
