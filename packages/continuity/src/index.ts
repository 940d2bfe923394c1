/**
 * @tito/continuity owns the engine: (state, turn) → (state, decision with a reason). Pure: no files, no clock, no network.
 * It never touches bytes or sockets and never changes a token.
 */
export { commit } from "./commit.js";
export { type DecideOptions, decide } from "./decide.js";
export { CAUSE_DETAIL_MAX, DRIFT_CAUSES, type Drift, type DriftCause, METRICS } from "./drift-causes.js";
export { type DriftInput, explainDrift } from "./explain-drift.js";
export { HARNESS_RULES, rulesFor } from "./harness-rules.js";
export { commonPrefix, equalIds } from "./ids.js";
export { canonicalJson, sameJson } from "./json-text.js";
export {
  type CanonicalMessage,
  canonicalMessage,
  compareMessages,
  flatText,
  type MessageDifference,
  type SameMessage,
  sameMessage,
} from "./message.js";
export { APPEND_REASONS, type AppendReason, OPENING_REASONS, type OpeningReason } from "./reasons.js";
export { type HarnessRules, NO_RULES } from "./rules.js";
export { closeSegment, createState, type EngineState, lineIds, setDelivery } from "./state.js";
export type { Continuation, Decision, DeliveryState, EngineTurn } from "./types.js";
