/** What a reply of a bundle looks like, found from the template's own behaviour: behind an open reasoning block, behind a closed empty one, or plain. */
import type { Message, ToolDefinition } from "@tito/format";
import type { PromptRenderer } from "../prompt-renderer.js";
import { type ProbeForm, TOOLS } from "./probe-conversations.js";
import { sameReply } from "./same-reply.js";

const USER: Message = { role: "user", content: "List the files." };
const TEXT = "A listing is enough.";

/**
 * Spellings of a reply without reasoning. Where the prompt ends with a closed empty block, some templates print that block in history only for
 * reasoning that is a line break.
 */
const EMPTY: readonly (string | undefined)[] = [undefined, "", "\n"];

/**
 * The form that the template prints as it was sampled, inside a tool loop or, for families without calls, as the last turn. What the family says
 * is possible is kept where the template says so too.
 */
export function findForm(renderer: PromptRenderer): ProbeForm {
  const { carries } = renderer.family;
  const said = carries.reasoning(renderer.templateArguments);
  const { reasoning: _, ...rest } = carries;
  const opens = renderer.opensReasoning(renderer.render([USER], []).ids);
  const withText = holds(renderer, rest.calls_max, TEXT);
  // Behind an open block nothing but reasoning can be sampled, unless the template prints a turn without it the same way.
  const spellings = opens ? EMPTY.slice(0, 2) : EMPTY;
  const empty = spellings.find((spelling) => holds(renderer, rest.calls_max, spelling));
  const withoutText = empty !== undefined || holds(renderer, rest.calls_max, undefined);
  const form = { ...rest, ...(empty === undefined ? {} : { empty_reasoning: empty }) };
  if (said !== "never" && withText && !(said === "optional" && withoutText)) return { ...rest, reasoning: "always" };
  if (withText && withoutText && said === "optional") return { ...form, reasoning: "optional" };
  if (withoutText) return { ...form, reasoning: "never" };
  // Neither holds, or thinking was switched off and the template thinks all the same.
  return { ...rest, reasoning: withText ? "always" : said };
}

/** Does the template print a turn with this reasoning as it was sampled? */
function holds(renderer: PromptRenderer, callsMax: number, reasoning: string | undefined): boolean {
  const call = { id: "call_0", name: TOOLS[0]!.name, arguments: "{}" };
  const reply: Message = {
    role: "assistant",
    content: callsMax > 0 ? "" : "Done.",
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(callsMax > 0 ? { tool_calls: [call] } : {}),
  };
  const result: Message[] = callsMax > 0 ? [{ role: "tool", tool_call_id: call.id, content: "a.txt" }] : [];
  const tools: readonly ToolDefinition[] = callsMax > 0 ? TOOLS : [];
  try {
    const prompt = renderer.render([USER], tools).ids;
    const full = renderer.render([USER, reply, ...result], tools, { generationPrompt: callsMax > 0 }).ids;
    if (prompt.some((id, i) => full[i] !== id)) return false;
    const stop = full.findIndex((id, i) => i >= prompt.length && renderer.stopIds.includes(id));
    if (stop < 0) return false;
    const context = { promptTail: prompt, promptTokens: prompt.length, tools };
    const parsed = renderer.parse(full.slice(prompt.length, stop + 1), context);
    return !parsed.malformed && sameReply(parsed.message, reply);
  } catch {
    return false;
  }
}
