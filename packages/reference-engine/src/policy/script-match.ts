import type { Vocabulary } from "../model/vocabulary.js";
import type { EncodedPrompt } from "../render/prompt.js";
import type { Script, ScriptMatch, ScriptReply, ScriptRule } from "./script-schema.js";

/** A prompt as rules see it: read back from its ids, so that a chat and the same prompt sent as ids match the same rules. */
export interface PromptView {
  text: string;
  lastRole: string | null;
  lastText: string;
  toolNames: string[] | null;
}

export function viewPrompt(prompt: EncodedPrompt, vocabulary: Vocabulary): PromptView {
  const text = vocabulary.decode(prompt.ids, { skipSpecial: false });
  const turns = turnsOf(prompt.ids, vocabulary);
  // The last turn is the open one, in which the answer goes.
  const last = turns.at(-2);
  return { text, lastRole: last?.role ?? null, lastText: last?.text ?? "", toolNames: prompt.toolNames };
}

interface TurnText {
  role: string;
  text: string;
}

/** ChatML turns, split at the start token itself: the same letters in a tool result start nothing. */
function turnsOf(ids: readonly number[], vocabulary: Vocabulary): TurnText[] {
  const start = vocabulary.markerOf("<|im_start|>")?.id;
  const turns: TurnText[] = [];
  let from = -1;
  for (let at = 0; at <= ids.length; at++) {
    if (at < ids.length && ids[at] !== start) continue;
    if (from >= 0) turns.push(turnOf(vocabulary.decode(ids.slice(from + 1, at), { skipSpecial: true })));
    from = at;
  }
  return turns;
}

function turnOf(text: string): TurnText {
  const newline = text.indexOf("\n");
  const role = newline < 0 ? text : text.slice(0, newline);
  const body = newline < 0 ? "" : text.slice(newline + 1);
  // Qwen's template puts tool results into user turns.
  return { role: role === "user" && body.startsWith("<tool_response>") ? "tool" : role, text: body };
}

/** The rule that answers, and which of its uses this is (from 0). */
export interface RuleUse {
  rule: ScriptRule | null;
  reply: ScriptReply;
}

/** Chooses rules in order and counts their uses. */
export class RuleBook {
  readonly #script: Script;
  readonly #counts: { seen: number; used: number }[];

  constructor(script: Script) {
    this.#script = script;
    this.#counts = script.rules.map(() => ({ seen: 0, used: 0 }));
  }

  choose(view: PromptView): RuleUse {
    for (const [index, rule] of this.#script.rules.entries()) {
      const count = this.#counts[index];
      if (count === undefined || !matches(rule.match, view)) continue;
      count.seen++;
      if (rule.match.nth !== undefined && count.seen !== rule.match.nth) continue;
      if (rule.times !== undefined && count.used >= rule.times) continue;
      const replies = rule.reply === undefined ? (rule.replies ?? []) : [rule.reply];
      const reply = replies[Math.min(count.used, replies.length - 1)] ?? this.#script.unmatched;
      count.used++;
      return { rule, reply };
    }
    return { rule: null, reply: this.#script.unmatched };
  }
}

function matches(match: ScriptMatch, view: PromptView): boolean {
  const offers = (name: string) => (view.toolNames === null ? view.text.includes(name) : view.toolNames.includes(name));
  return (
    (match.lastRole === undefined || match.lastRole === view.lastRole) &&
    listOf(match.contains).every((text) => view.text.includes(text)) &&
    listOf(match.lastContains).every((text) => view.lastText.includes(text)) &&
    !listOf(match.excludes).some((text) => view.text.includes(text)) &&
    listOf(match.toolNames).every(offers) &&
    (match.hasTools === undefined || view.toolNames === null || match.hasTools === view.toolNames.length > 0)
  );
}

function listOf(texts: string | string[] | undefined): string[] {
  return texts === undefined ? [] : typeof texts === "string" ? [texts] : texts;
}
