/** One call as a log tells it, in the terms in which a live call is recorded. */
import type { LaneVerdict } from "@tito/continuity";
import type { Dialect, LogprobMode, TurnRecord } from "@tito/format";
import type { NeutralRequest } from "../dialect/neutral.js";
import type { Defect } from "../sample/sampled.js";

export interface LoggedCall {
  callId: string;
  dialect: Dialect;
  headers: ReadonlyMap<string, readonly string[]>;
  request: NeutralRequest;
  /** JSON text: the request as the log holds it, else what the record says beside ids and log probabilities. */
  body: string;
  sampling: Record<string, unknown>;
  /** The reply in the shape of an engine's chat body. */
  reply: unknown;
  /** Defects that only mean that this log has no such field. */
  excused: ReadonlySet<Defect>;
  /** Null: by the rules, as for a live call. */
  lane: LaneVerdict | null;
  logprobMode: LogprobMode | null;
  /** Null: the log does not say. */
  delivered: boolean | null;
  engine: string | null;
  model: string | null;
  rendererContract: string | null;
  retryOf: string | null;
  times: LoggedTimes;
}

/** The engine that answered a call, as one name: `told` where the log does not say. */
export function engineOf(call: Pick<LoggedCall, "engine">, told: string | undefined): string {
  return call.engine ?? told ?? "unknown";
}

/** Milliseconds since the epoch; null where the log has none. */
export interface LoggedTimes {
  received: number | null;
  sent: number | null;
  firstToken: number | null;
  finished: number | null;
}

/** What the record of a turn holds: an instant is a number there, 0 where it is not known. */
export function recordedTimes(times: LoggedTimes): TurnRecord["times"] {
  return {
    received_ms: times.received ?? times.sent ?? 0,
    sent_ms: times.sent ?? times.received ?? 0,
    first_token_ms: times.firstToken,
    finished_ms: times.finished ?? times.received ?? 0,
  };
}

/** Ids that a log gives to what its calls belong to. */
export interface Labels {
  /** As the log spells it; null when it names none. */
  trajectory: string | null;
  runId: string | null;
  groupId: string | null;
  trialId: string | null;
  attempt: number | null;
  metadata: ReadonlyMap<string, string>;
}

/** One line of a log. */
export interface LoggedLine {
  labels: Labels;
  /** The line holds all calls of a trial. */
  trial: boolean;
  calls: LoggedCall[];
  /** Fields that nothing reads. */
  ignored: string[];
  warnings: string[];
}
