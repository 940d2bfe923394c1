import type { Model } from "../model.js";
import { type Rng, rngFrom } from "../random.js";
import { NEUTRAL_SAMPLING, sampleToken } from "../sampling.js";
import { type DemoTask, demoTasks, TASK_KINDS, type TaskKind } from "../tasks.js";
import { type ChatMessage, drawSystemMessage } from "./episode.js";

/** How one rollout of a task went. */
export interface Rollout {
  readonly solved: boolean;
  readonly modelCalls: number;
  /** Tokens of each call's prompt. */
  readonly promptTokens: readonly number[];
  readonly messages: readonly ChatMessage[];
}

const MODEL_CALLS_MAX = 6;
const SAMPLED_TOKENS_MAX = 64;

/** Lets the policy work on the task with in-process copies of the demo's tools, as the harness would: until it answers without a tool call. */
export function rollOut(
  model: Model,
  render: (messages: readonly ChatMessage[], addGenerationPrompt: boolean) => string,
  task: Pick<DemoTask, "prompt" | "expected">,
  { temperature, rng }: { temperature: number; rng: Rng },
): Rollout {
  const messages: ChatMessage[] = [drawSystemMessage(rng), { role: "user", content: task.prompt }];
  const files = new Map<string, string>();
  const promptTokens: number[] = [];
  while (promptTokens.length < MODEL_CALLS_MAX) {
    const ids = model.tokenizer.encode(render(messages, true), { special: true });
    promptTokens.push(ids.length);
    const message = parseTurn(model.tokenizer.decode(sampleTurn(model, ids, temperature, rng), { skipSpecial: true }));
    messages.push(message);
    if (!message.tool_calls) break;
    for (const { function: call } of message.tool_calls)
      messages.push({ role: "tool", content: runTool(call.name, call.arguments, files) });
  }
  const solved = files.get(task.expected.file)?.trim() === task.expected.text;
  return { solved, modelCalls: promptTokens.length, promptTokens, messages };
}

function sampleTurn(model: Model, prompt: Int32Array, temperature: number, rng: Rng): number[] {
  const end = model.tokenizer.specialIds.get("<|im_end|>");
  const session = model.newSession();
  const sampled: number[] = [];
  let logits = session.prefill(prompt);
  while (sampled.length < SAMPLED_TOKENS_MAX) {
    const { id } = sampleToken(logits, { ...NEUTRAL_SAMPLING, temperature }, rng);
    sampled.push(id);
    if (id === end) break;
    logits = session.step(id);
  }
  return sampled;
}

/** `<think>…</think>` at the start, then text, then tool calls; a call that is not JSON stays text. */
function parseTurn(text: string): ChatMessage {
  const thought = /^<think>([\s\S]*?)<\/think>/.exec(text);
  const rest = thought ? text.slice(thought[0].length) : text;
  const calls = [...rest.matchAll(/<tool_call>\n([\s\S]*?)\n<\/tool_call>/g)].flatMap(([, json]) => parseCall(json!));
  return {
    role: "assistant",
    content: rest.split("<tool_call>")[0]!,
    ...(thought ? { reasoning_content: thought[1]! } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function parseCall(json: string): NonNullable<ChatMessage["tool_calls"]> {
  try {
    const call = JSON.parse(json) as { name?: unknown; arguments?: unknown };
    if (typeof call.name !== "string" || typeof call.arguments !== "object" || call.arguments === null) return [];
    const entries = Object.entries(call.arguments).map(([key, value]) => [key, String(value)]);
    return [{ function: { name: call.name, arguments: Object.fromEntries(entries) as Record<string, string> } }];
  } catch {
    return [];
  }
}

/** The rules of fixtures/demo/pi-tools.mjs, on a map instead of a directory. */
function runTool(name: string, args: Record<string, string>, files: Map<string, string>): string {
  if (name === "save" && /^[a-z]{1,16}\.txt$/.test(args.name ?? "")) {
    files.set(args.name!, args.text ?? "");
    return "saved";
  }
  const sum = name === "calc" ? /^(\d{1,9})([+-])(\d{1,9})$/.exec(args.expression ?? "") : null;
  if (sum) return String(Number(sum[1]) + (sum[2] === "-" ? -1 : 1) * Number(sum[3]));
  return "error";
}

/** What a kind of task came to over held-out operands. */
export interface TaskKindScore {
  readonly kind: TaskKind;
  readonly rollouts: number;
  readonly solved: number;
  /** Over all rollouts. */
  readonly modelCalls: number;
  readonly promptTokensMax: number;
}

/** One rollout for each of `rollouts` held-out tasks of each kind; the same numbers on every machine. */
export function measurePolicy(
  model: Model,
  render: (messages: readonly ChatMessage[], addGenerationPrompt: boolean) => string,
  { rollouts, temperature }: { rollouts: number; temperature: number },
): TaskKindScore[] {
  return TASK_KINDS.map((kind) => {
    const rng = rngFrom("measure", kind);
    const done = demoTasks(kind, rollouts, "measure").map((task) => rollOut(model, render, task, { temperature, rng }));
    return {
      kind,
      rollouts,
      solved: done.filter(({ solved }) => solved).length,
      modelCalls: done.reduce((sum, { modelCalls }) => sum + modelCalls, 0),
      promptTokensMax: Math.max(...done.flatMap(({ promptTokens }) => promptTokens)),
    };
  });
}
