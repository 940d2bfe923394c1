/** Names the cause where the messages are equal: the template prints them otherwise, the arguments are spelled otherwise, or the same text has other ids. */
import type { Message } from "@tito/format";
import { type Drift, drift } from "./drift-causes.js";
import { changeAt, type IdChange } from "./id-change.js";
import type { IdPlace } from "./id-place.js";
import type { MessageDifference } from "./message.js";
import { respelledBy } from "./python-json.js";
import {
  type DifferenceTexts,
  estimatedPart,
  type PartOfReply,
  partInText,
  type ReplyPart,
  reasoningShare,
} from "./reply-part.js";

export interface EqualMessages {
  place: IdPlace;
  /** Message `place.to` of the earlier turn. */
  reply: Message | undefined;
  /** What differs in the messages without being printed by most templates. */
  faint: readonly { message: number; difference: MessageDifference }[];
  texts: DifferenceTexts | null;
  user_follows: boolean;
}

/** Ids of a template's own form that may take the place of a reasoning block which it leaves out. */
const FORM_IDS_MAX = 6;
/** Share of the reasoning that is certainly gone where a block was left out: its length in ids is an estimate. */
const REASONING_LEFT_OUT = 0.75;

type Sampled = IdPlace & { reply: { start: number; end: number } };

/** The cause, from where the ids differ and how. Without texts, the shape of the change is evidence: no two single ids have one text, and none has no text. */
export function explainEqual(input: EqualMessages): Drift {
  const { place, reply } = input;
  const sampled = place.reply !== null && reply?.role === "assistant" ? (place as Sampled) : null;
  if (sampled === null || reply === undefined) return printedOtherwise(input, null);
  const change = changeAt(place.line, place.prompt, place.at, sampled.reply.end);
  const inContext = place.at < sampled.reply.start;
  const reachesReply = change !== null && place.at + change.earlier > sampled.reply.start;
  if (inContext && !reachesReply) return printedOtherwise(input, null);
  const found = partOf(input, reply, sampled);
  if (found === null) return retokenised(input);
  if (input.texts !== null) return printedOtherwise(input, found.part);
  if (found.part === "tool_calls" && faintAt(input, "tool_call_ids_renamed") !== null)
    return printedOtherwise(input, found.part);
  const isCall = found.part === "tool_calls" && (found.sure || isRespelled(reply, change));
  const part = found.part === "tool_calls" && !isCall ? "content" : found.part;
  if (changesText(change, input)) return printedOtherwise(input, part);
  // Joined to the last id of the template's header: one id back at most.
  if (inContext && place.at < sampled.reply.start - 1) return printedOtherwise(input, part);
  if (part === "tool_calls" && isRespelled(reply, change)) return printedOtherwise(input, part);
  return retokenised(input);
}

/** The part of the reply that the place lies in; null when the texts are equal. */
function partOf({ texts, place }: EqualMessages, reply: Message, sampled: Sampled): PartOfReply | null {
  if (texts === null) return estimatedPart(reply, sampled);
  const part = partInText(reply, texts);
  return part === null ? null : { part: place.at === sampled.reply.end - 1 ? "end" : part, sure: true };
}

/** Do the ids that changed certainly have another text? */
function changesText(change: IdChange | null, input: EqualMessages): boolean {
  const { place, reply } = input;
  const share = reasoningShare(reply!);
  if (change === null) return share > 0 && input.user_follows;
  const { earlier, now } = change;
  if (earlier === 0 || now === 0 || (earlier === 1 && now === 1)) return true;
  return share > 0 && now <= FORM_IDS_MAX && earlier > 2 * now && leavesOutReasoning(place, earlier, share);
}

/** The change begins where the reasoning does and goes to its end. */
function leavesOutReasoning({ at, reply }: IdPlace, ids: number, share: number): boolean {
  const { start, end } = reply!;
  return at <= start + 2 && at + ids >= start + REASONING_LEFT_OUT * share * (end - start);
}

/** The arguments as they are spelled are not what a template prints, and the change goes in the direction that its spelling takes. */
function isRespelled(reply: Message, change: IdChange | null): boolean {
  const longer = (reply.tool_calls ?? []).map((call) => respelledBy(call.arguments)).filter((by) => by !== null);
  if (longer.length === 0) return false;
  if (change === null || longer.some((by) => by <= 0)) return true;
  return change.now >= change.earlier;
}

function retokenised({ place }: EqualMessages): Drift {
  return drift("retokenised", `message ${place.to} (assistant): the same text in other ids than were sampled`);
}

/** The message that such a difference was found in. */
function faintAt({ faint }: EqualMessages, ...differences: MessageDifference[]): number | null {
  return faint.find(({ difference }) => differences.includes(difference))?.message ?? null;
}

/** Another text of equal messages. */
function printedOtherwise(input: EqualMessages, part: ReplyPart | null): Drift {
  const { place, reply } = input;
  const reshaped = faintAt(input, "role_alias", ...(part === "reasoning" || part === "end" ? [] : SHAPE));
  const renamed = faintAt(input, "tool_call_id", "tool_call_ids_renamed");
  if (renamed !== null && (part === null || part === "tool_calls"))
    return drift("tool_call_id_renamed", `message ${renamed}: the same call under another id`);
  const single = place.from === place.to || part !== null;
  const where = single ? `message ${place.to}` : `messages ${place.from} to ${place.to}`;
  if (part === "tool_calls")
    return drift("tool_arguments_reserialised", `${where} (assistant): the call is printed in another spelling`);
  if (reshaped !== null) return drift("content_reshaped", `message ${reshaped}: same text in another shape`);
  const what = part === null ? "" : ` (${reply?.role}, ${part})`;
  return drift("template_rewrite", `${where}${what}: an equal message is printed otherwise`);
}

const SHAPE = ["content_shape"] as const;
