/**
 * Were tools offered, and were any called? A run whose tools are never called may be an honest one, or one whose engine has the wrong
 * output parser: then every call stands as text in the answers. Nothing is excluded for it; it is told. Pure.
 */
import type { Message } from "@tito/format";
import type { EvidenceTurn } from "./evidence.js";

/** Turns of a run, auxiliary ones left out. */
export interface ToolUse {
  /** Turns whose request offered tools. */
  offered_turns: number;
  /** Of these, turns whose answer held a parsed call. */
  called_turns: number;
  /** Of these, turns without a parsed call whose text looks like one. */
  unparsed_turns: number;
}

export function toolUseOf(turns: readonly Pick<EvidenceTurn, "lane" | "tools_offered" | "message">[]): ToolUse {
  const offered = turns.filter((turn) => turn.tools_offered && !turn.lane.startsWith("aux:"));
  const silent = offered.filter((turn) => (turn.message.tool_calls ?? []).length === 0);
  return {
    offered_turns: offered.length,
    called_turns: offered.length - silent.length,
    unparsed_turns: silent.filter((turn) => looksLikeCall(turn.message)).length,
  };
}

export const NO_TOOL_USE: ToolUse = { offered_turns: 0, called_turns: 0, unparsed_turns: 0 };

export function addToolUse(a: ToolUse, b: ToolUse): ToolUse {
  return {
    offered_turns: a.offered_turns + b.offered_turns,
    called_turns: a.called_turns + b.called_turns,
    unparsed_turns: a.unparsed_turns + b.unparsed_turns,
  };
}

/** How model families write a call in plain text. */
const CALL_MARKS: readonly RegExp[] = [
  /<\/?tool_calls?>|<function=|<invoke |<[|｜]?tool[_▁]calls?/i,
  /\[TOOL_CALLS\]|<\|python_tag\|>|<\|channel\|>commentary to=|functools\[/,
  /"name"\s*:\s*"[^"]+"\s*,\s*"(arguments|parameters)"\s*:/,
];

function looksLikeCall(message: Message): boolean {
  const { content, reasoning } = message;
  const parts = Array.isArray(content) ? content.map((part) => (part.type === "text" ? part.text : "")) : [content];
  const text = [...parts, reasoning].join("\n");
  return CALL_MARKS.some((mark) => mark.test(text));
}

/** What is worth a warning about the runs of an output, null when nothing is. `uses` by run id. */
export function toolWarning(uses: readonly { run_id: string; use: ToolUse }[]): string | null {
  const silent = uses.filter(({ use }) => use.offered_turns > 0 && use.called_turns === 0);
  if (silent.length === 0) return null;
  const total = silent.map(({ use }) => use).reduce(addToolUse);
  const first = silent.find(({ use }) => use.unparsed_turns > 0) ?? silent[0]!;
  const runs = silent.length === 1 ? `run ${first.run_id} was` : `${silent.length} runs were`;
  const which = silent.length === 1 ? "" : ` (${total.unparsed_turns > 0 ? "one of them" : "first"}: ${first.run_id})`;
  const what = `${runs} offered tools in ${total.offered_turns} calls and no call was parsed${which}`;
  return total.unparsed_turns === 0
    ? `${what}; the text does not look like calls`
    : `${what}; in ${total.unparsed_turns} the text looks like a call: the engine's tool parser may be the wrong one`;
}
