/** Why an answer ended, in the neutral form. */
import type { NeutralFinish } from "../dialect/neutral.js";

/** `tool_calls` whenever there are calls and the answer is whole, also where the engine says stop. */
export function finishOf(finish: string | null, hasCalls: boolean): NeutralFinish {
  if (finish === "length") return "length";
  return hasCalls ? "tool_calls" : "stop";
}
