/**
 * @tito/continuity owns the engine: (state, turn) → (state, decision with a reason). Pure: no files, no clock, no network.
 * It never touches bytes or sockets and never changes a token.
 */
export { commit } from "./commit.js";
export { type DecideOptions, decide, textsWanted } from "./decide.js";
export { CAUSE_DETAIL_MAX, DRIFT_CAUSES, type Drift, type DriftCause, METRICS } from "./drift-causes.js";
export { type DriftCost, type DriftReport, driftReport, type ReportedTurn } from "./drift-report.js";
export { expectedPrefix } from "./expected-prefix.js";
export { type DriftInput, explainDrift } from "./explain-drift.js";
export { type CheckpointQuery, type FoundCheckpoint, findCheckpoint } from "./find-checkpoint.js";
export { GENERIC_RULES, HARNESS_RULES, rulesFor } from "./harness-rules.js";
export { historyMessages } from "./history.js";
export { commonPrefix, equalIds, portableEquals } from "./ids.js";
export { canonicalJson, sameJson } from "./json-text.js";
export {
  classifyLane,
  detectHarness,
  type LaneInput,
  type LaneVerdict,
  laneByRules,
  type Prologue,
  prologueOf,
} from "./lane.js";
export { laneFacts } from "./lane-facts.js";
export {
  FALLBACK_REASONS,
  type FallbackReason,
  type HistoryMatch,
  type KeptDifference,
  matchHistory,
} from "./match-history.js";
export {
  type BreakingDifference,
  type CanonicalMessage,
  canonicalMessage,
  compareMessages,
  flatText,
  type MessageDifference,
  type SameMessage,
  sameMessage,
} from "./message.js";
export { type RealignInput, type Realignment, realign } from "./realign.js";
export { APPEND_REASONS, type AppendReason, OPENING_REASONS, type OpeningReason } from "./reasons.js";
export type { DifferenceTexts } from "./reply-part.js";
export { isCheckpointable, type Restored, type RestoredTurn, restore } from "./restore.js";
export { type EarlierCall, type RetryEvidence, type RetryFacts, retryOf } from "./retry.js";
export {
  type HarnessRules,
  type LaneCondition,
  type LaneRule,
  NO_RULES,
  type VolatileText,
  withoutVolatile,
} from "./rules.js";
export { closeSegment, createState, type EngineState, lineIds, setDelivery } from "./state.js";
export type { Continuation, Decision, DeliveryState, EngineTurn } from "./types.js";
