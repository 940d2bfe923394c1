import { Template } from "@huggingface/jinja";
import type { Rng } from "../random.js";
import { DEMO_TOOLS, type DemoTask, makeTask, SYSTEM_PROMPT, TASK_KINDS, workDirectory } from "../tasks.js";
import type { Tokenizer } from "../tokenizer.js";

/** One message of a chat request, as far as the demo uses it. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly function: { readonly name: string; readonly arguments: Record<string, string> };
  }[];
}

/** Ids of a whole solved conversation; `sampled[i]` says that the policy has to learn to produce ids[i]. */
export interface Episode {
  readonly ids: Int32Array;
  readonly sampled: Uint8Array;
}

/** The system message as Pi sends it. */
function systemMessage(date: string, directory: string): ChatMessage {
  return {
    role: "system",
    content: `${SYSTEM_PROMPT}\nCurrent date: ${date}\nCurrent working directory: ${directory}`,
  };
}

/** A random day of 2024 … 2033 and a random directory of the demo's shape. */
export function drawSystemMessage(rng: Rng): ChatMessage {
  const day = new Date(Date.UTC(2024, 0, 1) + Math.floor(rng() * 3650) * 86_400_000);
  return systemMessage(day.toISOString().slice(0, 10), workDirectory(Math.floor(rng() * 1e6), Math.floor(rng() * 100)));
}

/**
 * A random training task, solved. Without `surroundings` the system message lacks date and directory: their digits hide the operands from a policy that
 * has not learned to copy yet, so training starts without them.
 */
export function drawConversation(rng: Rng, surroundings: boolean): ChatMessage[] {
  const kind = TASK_KINDS[Math.floor(rng() * TASK_KINDS.length)]!;
  const task = makeTask(kind, rng, "train");
  const system: ChatMessage = surroundings ? drawSystemMessage(rng) : { role: "system", content: SYSTEM_PROMPT };
  return [system, { role: "user", content: task.prompt }, ...solve(task)];
}

/** The turns that solve a task: what a perfect policy would sample, and what the tools would answer. */
function solve(task: DemoTask): ChatMessage[] {
  const answer = task.expected.text;
  const save = callTool("save", { name: task.expected.file, text: answer });
  const end: ChatMessage[] = [
    { role: "tool", content: "saved" },
    { role: "assistant", content: `The answer is ${answer}.` },
  ];
  const [a, b] = task.operands as [number, number];
  switch (task.kind) {
    case "sum":
      return [callTool("calc", { expression: `${a}+${b}` }), { role: "tool", content: answer }, save, ...end];
    case "total":
      return [{ ...save, reasoning_content: addAloud(a, b) }, ...end];
    case "larger":
      return [{ ...save, reasoning_content: compareAloud(a, b) }, ...end];
    default:
      return task.kind satisfies never;
  }
}

/** An assistant turn that is one tool call. */
export const callTool = (name: string, args: Record<string, string>): ChatMessage => ({
  role: "assistant",
  content: null,
  tool_calls: [{ function: { name, arguments: args } }],
});

/** Column addition from the right: "7+8=15 3+5+1=9". */
export function addAloud(a: number, b: number): string {
  const steps: string[] = [];
  let carry = 0;
  for (let left = a, right = b; left > 0 || right > 0; left = Math.floor(left / 10), right = Math.floor(right / 10)) {
    const column = (left % 10) + (right % 10) + carry;
    steps.push(`${left % 10}+${right % 10}${carry ? "+1" : ""}=${column}`);
    carry = column >= 10 ? 1 : 0;
  }
  return steps.join(" ");
}

/** Tens first, ones only when the tens are the same: "3 vs 5: second" or "5 vs 5: same 3 vs 8: second". */
function compareAloud(a: number, b: number): string {
  const [tensA, tensB, onesA, onesB] = [Math.floor(a / 10), Math.floor(b / 10), a % 10, b % 10];
  if (tensA !== tensB) return `${tensA} vs ${tensB}: ${tensA > tensB ? "first" : "second"}`;
  return `${tensA} vs ${tensB}: same ${onesA} vs ${onesB}: ${onesA >= onesB ? "first" : "second"}`;
}

/** Renders conversations with the model's own chat template, tools included. */
export function conversationRenderer(
  template: string,
): (messages: readonly ChatMessage[], addGenerationPrompt: boolean) => string {
  const parsed = new Template(template);
  return (messages, addGenerationPrompt) =>
    parsed.render({ messages, tools: DEMO_TOOLS, add_generation_prompt: addGenerationPrompt });
}

/** Ids of a rendered conversation; sampled are the tokens behind each `assistant` header up to and including `<|im_end|>`. */
export function tokenizeEpisode(text: string, tokenizer: Tokenizer): Episode {
  const ids = tokenizer.encode(text, { special: true });
  const header = tokenizer.encode("<|im_start|>assistant\n", { special: true });
  const end = tokenizer.specialIds.get("<|im_end|>")!;
  const sampled = new Uint8Array(ids.length);
  let inside = false;
  for (let i = 0; i < ids.length; i++) {
    if (inside) sampled[i] = 1;
    if (inside && ids[i] === end) inside = false;
    else if (header.every((id, back) => ids[i - header.length + 1 + back] === id)) inside = true;
  }
  return { ids, sampled };
}
