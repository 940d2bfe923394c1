/**
 * Text that a harness changes by itself from call to call (a clock, a token budget, a billing header) and that opens a segment each time:
 * what it is called and what it costs. Looks at messages and counts ids; decides nothing. Pure.
 */
import { flatText, HARNESS_RULES, type HarnessRules, withoutVolatile } from "@tito/continuity";
import type { LoggedTurn, Message, Lines as RecordedLines } from "@tito/format";
import type { LaneRules } from "../recipe/lane-rules.js";

export interface VolatileCost {
  /** The rule that names the text, or the words before it and the message that it stands in. */
  text: string;
  /** Segments that it opened. */
  segments: number;
  /** Prompt tokens that the engine read again because of it. */
  reread_tokens: number;
  /** First turn of these. */
  turn: number;
}

/** A text that changes by itself is short; longer differences are other messages. */
const CHANGED_CHARS_MAX = 120;
const CHANGED_LINES_MAX = 8;
const WORDS_CHARS_MAX = 48;

/** The texts that opened segments, dearest first. */
export function volatileCosts(lines: RecordedLines, own: readonly LaneRules[] = []): VolatileCost[] {
  const costs = new Map<string, VolatileCost>();
  lines.turns.forEach((turn, index) => {
    const { kind, evidence } = turn.record.decision;
    if (kind === "append" || evidence.cause === null) return;
    const prompt = lines.promptLength(turn) ?? evidence.match_tokens;
    for (const text of changedTexts(lines, turn, own)) {
      const cost = costs.get(text) ?? { text, segments: 0, reread_tokens: 0, turn: index };
      cost.segments += 1;
      cost.reread_tokens += Math.max(0, prompt - evidence.match_tokens);
      costs.set(text, cost);
    }
  });
  return [...costs.values()].sort((a, b) => b.reread_tokens - a.reread_tokens || (a.text < b.text ? -1 : 1));
}

/** Costs of several trajectories together. */
export function addVolatileCosts(all: readonly (readonly VolatileCost[])[]): VolatileCost[] {
  const sums = new Map<string, VolatileCost>();
  for (const cost of all.flat()) {
    const sum = sums.get(cost.text);
    if (sum === undefined) sums.set(cost.text, { ...cost });
    else {
      sum.segments += cost.segments;
      sum.reread_tokens += cost.reread_tokens;
    }
  }
  return [...sums.values()].sort((a, b) => b.reread_tokens - a.reread_tokens || (a.text < b.text ? -1 : 1));
}

/** The first message that differs from the history which this request continues, when only a short text in it does. */
function changedTexts(lines: RecordedLines, turn: LoggedTurn, own: readonly LaneRules[]): string[] {
  const against = turn.record.decision.evidence.against_call_id;
  const earlier = against == null ? null : lines.turnOf(against);
  const next = lines.messages(turn);
  const before = earlier === null ? null : lines.messages(earlier);
  if (earlier === null || before === null || next === null) return [];
  const history = [...before, earlier.record.message];
  for (let i = 0; i < Math.min(history.length, next.length); i += 1) {
    const [left, right] = [history[i]!, next[i]!];
    if (left === right) continue;
    const texts = [flatText(left.content), flatText(right.content)] as const;
    if (texts[0] === texts[1]) continue;
    if (left.role !== right.role || left.role === "assistant" || left.role === "tool") return [];
    return namesOf(left, texts, own);
  }
  return [];
}

function namesOf(message: Message, [left, right]: readonly [string, string], own: readonly LaneRules[]): string[] {
  for (const rules of [...(own as readonly HarnessRules[]), ...HARNESS_RULES]) {
    const [a, b] = [withoutVolatile(left, rules), withoutVolatile(right, rules)];
    if (a.text === b.text)
      return [...new Set([...a.names, ...b.names])].filter((name) => differs(name, left, right, rules));
  }
  const changes = changedLines(left, right) ?? [[left, right] as const];
  const places = changes.map(([before, after]) => changedPlace(before, after));
  if (places.some((place) => place === null)) return [];
  return [...new Set(places.map((words) => `${words} in the ${message.role} message`))];
}

/** The lines that differ, where both texts have as many and only a few do; null: they are not alike line by line. */
function changedLines(left: string, right: string): (readonly [string, string])[] | null {
  const [before, after] = [left.split("\n"), right.split("\n")];
  if (before.length !== after.length) return null;
  const changes = before.flatMap((line, i) => (line === after[i] ? [] : [[line, after[i]!] as const]));
  return changes.length <= CHANGED_LINES_MAX ? changes : null;
}

/** The words before a short difference; null when it is no short one. */
function changedPlace(left: string, right: string): string | null {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  const rest = Math.min(left.length, right.length) - start;
  let end = 0;
  while (end < rest && left[left.length - 1 - end] === right[right.length - 1 - end]) end += 1;
  const changed = Math.max(left.length, right.length) - start - end;
  return changed > CHANGED_CHARS_MAX ? null : wordsBefore(left, start);
}

/** The text of this rule alone is what changed, among those of a harness that do. */
function differs(name: string, left: string, right: string, rules: HarnessRules): boolean {
  const others: HarnessRules = { ...rules, volatile: rules.volatile.filter((rule) => rule.name !== name) };
  return withoutVolatile(left, others).text !== withoutVolatile(right, others).text;
}

/** What stands before the difference on its line, without the part of the changing value that happened to be equal. */
function wordsBefore(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf("\n", Math.max(0, at - 1)) + 1, at);
  const withoutNumbers = line.replace(/(?:(?:^|\s+)\S*\d\S*)+$/, "");
  const words = withoutNumbers.replace(/([:=])\s*\S*$/, "$1").trim();
  if (words === "") return "text at the start of a line";
  return JSON.stringify(words.length > WORDS_CHARS_MAX ? `…${words.slice(-WORDS_CHARS_MAX)}` : words);
}
