/**
 * @tito/continuity owns the engine: (state, turn) → (state, decision with a reason). Pure: no files, no clock, no network.
 * It never touches bytes or sockets and never changes a token.
 */
export type { Decision, EngineTurn, OpeningReason } from "./types.js";
