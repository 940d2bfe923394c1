/** A trajectory as a prompt sees it. */
import type { EngineState } from "@tito/continuity";
import type { TurnEnding } from "./turn-log.js";

/** What was recorded before a request: where incremental mode looks for its checkpoint. */
export interface Conversation {
  state: EngineState;
  harness: string | null;
  /** Call id → how that turn's sampling ended. */
  endings: ReadonlyMap<string, TurnEnding>;
}
