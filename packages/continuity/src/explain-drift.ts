/** Names the cause of a drift: where the ids differ says which message and part it is about, then the messages say what happened to it. The ids have already decided. */
import type { Message } from "@tito/format";
import { type Drift, drift } from "./drift-causes.js";
import { explainEqual } from "./explain-equal.js";
import { explainMessage } from "./explain-message.js";
import { type DriftPlace, explainMisalignment } from "./explain-misalignment.js";
import type { IdPlace } from "./id-place.js";
import { compareMessages, type MessageDifference } from "./message.js";
import { pairsUp } from "./pair-messages.js";
import { type DifferenceTexts, estimatedPart, partInText } from "./reply-part.js";
import { type HarnessRules, NO_RULES } from "./rules.js";

export interface DriftInput {
  /** The earlier turn's request messages. */
  previous: readonly Message[];
  /** Its reply, as returned to the harness. */
  reply: Message;
  /** The messages of the request that drifted. */
  next: readonly Message[];
  tools_changed: boolean;
  contract_changed: boolean;
  rules?: HarnessRules;
  /** Texts of recent summaries that the policy itself wrote. */
  summaries?: readonly string[];
  /** Where the ids differ; without it only the messages speak. */
  place?: IdPlace | null;
  /** The texts around the place, where somebody can decode ids. */
  texts?: DifferenceTexts | null;
}

/** Differences that most templates print alike; they explain a drift only when nothing else does. */
const FAINT: ReadonlySet<MessageDifference> = new Set([
  "content_shape",
  "role_alias",
  "tool_call_ids_renamed",
  "tool_call_id",
]);

/** The first difference that the ids show gives the cause. */
export function explainDrift(input: DriftInput): Drift {
  if (input.contract_changed) return drift("contract_changed", "the renderer contract differs");
  const place = input.place ?? null;
  // Templates print the tools before the first reply, so a difference in a sampled reply has another cause.
  if (input.tools_changed && (place?.reply == null || place.at < place.reply.start))
    return drift("tools_changed", "the tools list differs");
  return explainByMessages(input, place) ?? explainEqualMessages(input, place);
}

/** The first message that differs where the ids do; null when the messages there are equal. */
function explainByMessages(input: DriftInput, place: IdPlace | null): Drift | null {
  const rules = input.rules ?? NO_RULES;
  const earlier = [...input.previous, input.reply];
  const { next } = input;
  const [from, to] = place === null ? [0, earlier.length - 1] : [place.from, place.to];
  for (let i = 0; i < Math.min(earlier.length, next.length); i++) {
    const stored = earlier[i]!;
    const returned = next[i]!;
    const differences = compareMessages(stored, returned, rules).filter((one) => !FAINT.has(one));
    if (differences.length === 0) continue;
    const at: DriftPlace = { earlier, next, index: i, rules, summaries: input.summaries ?? [] };
    if (!pairsUp(at)) return i <= to ? explainMisalignment(at) : null;
    // The template does not print what differs here: the ids agree behind it.
    if (i < from) continue;
    if (i > to) return null;
    const shown = shownDifference(differences, stored, { input, place, index: i });
    return shown === null ? null : explainMessage(at, shown);
  }
  if (next.length < earlier.length && next.length <= to)
    return drift(
      "history_truncated",
      `the request ends ${earlier.length - next.length} message(s) before the earlier one`,
    );
  return null;
}

/** Of several differences of a message the one in the part where the ids differ; null when the ids certainly differ in a part that is equal. */
function shownDifference(
  differences: readonly MessageDifference[],
  stored: Message,
  { input, place, index }: { input: DriftInput; place: IdPlace | null; index: number },
): MessageDifference | null {
  const first = differences[0]!;
  if (place?.reply == null || index !== place.to || stored.role !== "assistant") return first;
  const read = input.texts == null ? null : partInText(stored, input.texts);
  if (input.texts != null && read === null) return null;
  const found = read === null ? estimatedPart(stored, { ...place, reply: place.reply }) : { part: read, sure: true };
  const inPart = differences.find((difference) => PART_OF[difference] === found.part);
  if (inPart !== undefined) return inPart;
  // What differs is printed behind the place: something before it differs too, in ids alone.
  const behind = differences.every((difference) => order(PART_OF[difference]) > order(found.part));
  return found.sure && behind ? null : first;
}

const PARTS = ["reasoning", "content", "tool_calls", "end"] as const;
const order = (part: (typeof PARTS)[number] | undefined): number => (part === undefined ? -1 : PARTS.indexOf(part));

/** The part of a reply that a difference is in. */
const PART_OF: Partial<Record<MessageDifference, (typeof PARTS)[number]>> = {
  reasoning_trimmed: "reasoning",
  reasoning_absent: "reasoning",
  reasoning: "reasoning",
  content_trimmed: "content",
  content: "content",
  name_listed: "tool_calls",
  name: "tool_calls",
  arguments_format: "tool_calls",
  arguments: "tool_calls",
  tool_call_ids: "tool_calls",
};

/** The messages are equal where the ids differ, so the template, the spelling or the tokenizer makes the difference. */
function explainEqualMessages(input: DriftInput, place: IdPlace | null): Drift {
  const earlier = [...input.previous, input.reply];
  const userFollows = input.next.slice(earlier.length).some((message) => message.role === "user");
  if (place !== null) {
    const faint = earlier.slice(place.from, place.to + 1).flatMap((stored, i) => {
      const returned = input.next[place.from + i];
      const found = returned === undefined ? [] : compareMessages(stored, returned, input.rules);
      return found.filter((one) => FAINT.has(one)).map((difference) => ({ message: place.from + i, difference }));
    });
    const { texts = null } = input;
    return explainEqual({ place, reply: earlier[place.to], faint, texts, user_follows: userFollows });
  }
  if (userFollows) return drift("template_rewrite", "all messages are equal and a new user message follows");
  const faint = earlier.findIndex((stored, i) => compareMessages(stored, input.next[i]!, input.rules).length > 0);
  if (faint >= 0) return drift("content_reshaped", `message ${faint}: same text in another shape`);
  return drift("retokenised", "all messages are equal and no user message follows");
}
