/** What the state knows that helps to tell lanes apart. */
import { historyMessages } from "./history.js";
import { type LaneInput, prologueOf } from "./lane.js";
import type { EngineState } from "./state.js";

/** The two facts about earlier turns that `classifyLane` takes. */
export function laneFacts(state: EngineState): Required<Pick<LaneInput, "laneOfCall" | "main">> {
  const main = state.last_of_lane.get("main");
  return {
    laneOfCall: (toolCallId) => state.replies.get(`call:${toolCallId}`)?.at(-1)?.lane,
    main: main === undefined ? null : prologueOf(historyMessages(main.history)),
  };
}
