/** What the start-up probe sends: fixed chats, as messages for the engine to render, or as the ids that a renderer makes of them. */
import type { Message, ToolDefinition } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import { chat } from "../dialect/chat.js";
import type { SentCall } from "../sample/sent-call.js";
import type { EngineAdapter } from "./adapter.js";

export const PROBE_TOOL = {
  type: "function",
  function: {
    name: "probe",
    description: "Answers a probe.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
};
/** Four fixed chats that touch what templates treat differently: plain, system, tools with call and result, several turns with reasoning. */
export const PROBE_CHATS: readonly Record<string, unknown>[] = [
  { messages: [{ role: "user", content: "tito probe 1" }] },
  {
    messages: [
      { role: "system", content: "tito probe" },
      { role: "user", content: " two\n" },
    ],
  },
  {
    messages: [
      { role: "user", content: "tito probe 3" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_probe", type: "function", function: { name: "probe", arguments: '{"text": "é"}' } }],
      },
      { role: "tool", tool_call_id: "call_probe", content: "done" },
    ],
    tools: [PROBE_TOOL],
  },
  {
    messages: [
      { role: "user", content: "tito probe 4" },
      // Under both names: vLLM's /tokenize reads only the second, its chat route and other engines the first.
      { role: "assistant", content: "one", reasoning_content: "why", reasoning: "why" },
      { role: "user", content: "and now?" },
    ],
  },
];
export const GREEDY: Record<string, number> = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  seed: 1,
};

interface ProbeFields {
  sampling: Record<string, number>;
  maxTokens: number;
  stream: boolean;
}

/** A probe chat as a call that asks for ids, log probabilities and the likeliest first token. */
export type ProbeForm = (chat: Record<string, unknown>, fields: ProbeFields) => Promise<SentCall>;

/** The engine renders; null for one whose chat route gives no ids. */
export function chatForm(model: string, adapter: Pick<EngineAdapter, "chat">): ProbeForm | null {
  const { chat: call } = adapter;
  if (call === null) return null;
  return async (probe, { sampling, maxTokens, stream }) =>
    call({
      chatBody: JSON.stringify({ ...probe, max_tokens: maxTokens, top_logprobs: 1 }),
      model,
      stream,
      sampling: asJson(sampling),
      maxOutputTokens: null,
    });
}

/** A renderer renders. */
export function idsForm(
  model: string,
  adapter: Pick<EngineAdapter, "ids">,
  renderer: Pick<Renderer, "render" | "stopIds">,
): ProbeForm {
  return async (probe, { sampling, maxTokens, stream }) => {
    const { messages, tools } = readProbe(probe);
    const { ids } = await renderer.render(messages, tools);
    return adapter.ids({
      request: { sampling: {}, stop: [] },
      model,
      promptIds: ids,
      maxTokens,
      stream,
      sampling: asJson(sampling),
      stopTokenIds: renderer.stopIds,
    });
  };
}

const asJson = (sampling: Record<string, number>): Map<string, string> =>
  new Map(Object.entries(sampling).map(([name, value]) => [name, JSON.stringify(value)]));

/** A probe chat, read as any harness's request is. */
export function readProbe(probe: Record<string, unknown>): { messages: Message[]; tools: ToolDefinition[] } {
  return chat.parse(Buffer.from(JSON.stringify(probe)));
}
