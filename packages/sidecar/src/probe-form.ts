/** What the start-up probe sends: fixed chats, as messages for the engine to render, or as the ids that a renderer makes of them. */
import type { Message, ToolDefinition } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import { chat } from "./dialect/chat.js";
import { VLLM_CHAT_PATH, VLLM_COMPLETIONS_PATH, vllmChatBody, vllmCompletionBody } from "./sample/vllm.js";

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
/** Marks the sidecar's own start-up calls in an engine's log. */
export const PROBE_HEADERS = { "x-tito-probe": "1" };

interface ProbeFields {
  sampling: Record<string, number>;
  maxTokens: number;
  stream: boolean;
}

/** How a probe chat goes to the engine. */
export interface ProbeForm {
  path: string;
  /** Body that asks for ids, log probabilities and the likeliest first token. */
  body(chat: Record<string, unknown>, fields: ProbeFields): Promise<string>;
}

/** The engine renders. */
export function chatForm(model: string): ProbeForm {
  return {
    path: VLLM_CHAT_PATH,
    body: async (probe, { sampling, maxTokens, stream }) =>
      vllmChatBody(JSON.stringify({ ...probe, ...sampling, max_tokens: maxTokens, top_logprobs: 1 }), {
        model,
        stream,
        sampling: new Map(),
        maxOutputTokens: null,
      }),
  };
}

/** A renderer renders. */
export function idsForm(model: string, renderer: Pick<Renderer, "render" | "stopIds">): ProbeForm {
  return {
    path: VLLM_COMPLETIONS_PATH,
    body: async (probe, { sampling, maxTokens, stream }) => {
      const { messages, tools } = readProbe(probe);
      const { ids } = await renderer.render(messages, tools);
      const request = { sampling, stop: [] };
      const own = { model, promptIds: ids, maxTokens, stream, sampling: new Map(), stopTokenIds: renderer.stopIds };
      return vllmCompletionBody(request, own);
    },
  };
}

/** A probe chat, read as any harness's request is. */
export function readProbe(probe: Record<string, unknown>): { messages: Message[]; tools: ToolDefinition[] } {
  return chat.parse(Buffer.from(JSON.stringify(probe)));
}
