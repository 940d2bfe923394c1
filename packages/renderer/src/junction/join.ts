/**
 * The junction: prompt ids = checkpoint ids, then what the template puts behind the sampled turn. The suffix is rendered behind an anchor (one user message and the
 * sampled turn's own message) and cut where that turn ends; the checkpoint's ids are never touched.
 */
import type { Message, ToolDefinition } from "@tito/format";
import type { PromptRenderer, RenderOptions } from "../prompt-renderer.js";
import { joinIds } from "../tokenizer/tokenizer.js";
import type { TurnEnd } from "./shapes.js";

const ANCHOR: Message = { role: "user", content: "anchor" };

/** What the template prints behind a sampled turn. */
export interface Tail {
  /** The id that ends the turn: a stop id, or for families that stop at the next role (GLM) that role's id. */
  stop_id: number;
  /** Ids of the template's own between the turn's end and the next message. */
  seam_ids: Int32Array;
  /** Everything behind the stop id, seam and generation prompt included. */
  ids: Int32Array;
  /** Text of special tokens in values was encoded as plain text. */
  special_text_escaped: boolean;
}

/** The tail for `suffix` behind `reply`; null when the template does not end the turn with a stop id. */
export function renderTail(
  renderer: PromptRenderer,
  reply: Message,
  suffix: readonly Message[],
  tools: readonly ToolDefinition[],
  options: RenderOptions = {},
): Tail | null {
  const before = renderer.render([ANCHOR], tools, options).ids;
  const { ids: whole, special_text_escaped } = renderer.render([ANCHOR, reply, ...suffix], tools, options);
  const stopAt = indexOfStop(renderer, whole, before);
  if (stopAt < 0) return null;
  const alone = renderer.render([ANCHOR, reply], tools, { ...options, generationPrompt: false }).ids;
  const aloneStop = indexOfStop(renderer, alone, before);
  const ids = whole.slice(stopAt + 1);
  const seam = aloneStop < 0 ? new Int32Array(0) : alone.slice(aloneStop + 1);
  const seamHolds = seam.every((id, i) => ids[i] === id);
  return { stop_id: whole[stopAt]!, seam_ids: seamHolds ? seam : new Int32Array(0), ids, special_text_escaped };
}

/** First stop id behind the common beginning of the anchor's prompt and `ids`. */
function indexOfStop(renderer: PromptRenderer, ids: Int32Array, before: Int32Array): number {
  let common = 0;
  while (common < before.length && ids[common] === before[common]) common++;
  return ids.findIndex((id, i) => i >= common && renderer.stopIds.includes(id));
}

export type Joined = { ids: Int32Array; seam_ids: Int32Array } | { fallback: "stop_mismatch" };

/**
 * Checkpoint and tail as one prompt. A sampled end of turn is neither lost nor doubled: when the checkpoint ends with the stop id that the template wants, the tail follows;
 * when sampling was cut, the template's stop id is part of the seam; any other ending does not fit.
 */
export function joinAtCheckpoint(checkpoint: Int32Array, end: TurnEnd, tail: Tail, stopIds: readonly number[]): Joined {
  const last = checkpoint.at(-1);
  if (end === "stop") {
    if (last !== tail.stop_id) return { fallback: "stop_mismatch" };
    return { ids: joinIds([checkpoint, tail.ids]), seam_ids: tail.seam_ids };
  }
  if (last !== undefined && stopIds.includes(last)) return { fallback: "stop_mismatch" };
  const stop = Int32Array.of(tail.stop_id);
  return { ids: joinIds([checkpoint, stop, tail.ids]), seam_ids: joinIds([stop, tail.seam_ids]) };
}
