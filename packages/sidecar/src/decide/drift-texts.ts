/** The texts around a drift: with them its cause is certain. Asked at the renderer or the engine, once for a prompt that drifted, and never needed. */
import { type Decision, type DifferenceTexts, type EngineState, type EngineTurn, textsWanted } from "@tito/continuity";
import type { TextOf } from "../sample/prompt-plan.js";

/** The texts that make a decision's cause certain; null when it is, or when they cannot be had: then the cause that the ids suggest stays. */
export async function textsOfDrift(
  state: EngineState,
  turn: EngineTurn,
  decision: Decision,
  textOf: TextOf | null,
): Promise<DifferenceTexts | null> {
  const wanted = textOf === null ? null : textsWanted(state, turn, decision);
  if (textOf === null || wanted === null) return null;
  try {
    const [earlier, now] = await Promise.all([textOf(wanted.earlier), textOf(wanted.now)]);
    return earlier === null || now === null ? null : { earlier, now };
  } catch {
    return null;
  }
}
