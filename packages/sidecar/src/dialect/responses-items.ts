/** Output items and the response object, as both the stream and the whole reply spell them. */
import type { CallShape, NeutralFinish, Usage } from "./neutral.js";
import { itemId, packReasoning } from "./responses-marker.js";

/** One output item while it is being made. */
export type OutputItem =
  | { kind: "reasoning"; id: string; text: string }
  | { kind: "message"; id: string; text: string }
  | { kind: "call"; id: string; callId: string; name: string; shape: CallShape | null; arguments: string };

export type ItemStatus = "in_progress" | "completed" | "incomplete";
type Json = Record<string, unknown>;

export function newItem(kind: "reasoning" | "message", key: string, outputIndex: number): OutputItem {
  return { kind, id: itemId(kind === "reasoning" ? "rs" : "msg", key, outputIndex), text: "" };
}

export function newCall(
  call: { id: string; name: string },
  shapes: ReadonlyMap<string, CallShape> | undefined,
  key: string,
  outputIndex: number,
): OutputItem & { kind: "call" } {
  const shape = shapes?.get(call.name) ?? null;
  const id = itemId(shape?.kind === "custom" ? "ctc" : "fc", key, outputIndex);
  return { kind: "call", id, callId: call.id, name: call.name, shape, arguments: "" };
}

/** An item as JSON, with what it holds so far. */
export function itemJson(item: OutputItem, status: ItemStatus): Json {
  switch (item.kind) {
    case "reasoning":
      return {
        type: "reasoning",
        id: item.id,
        summary: [],
        content: item.text === "" ? [] : [reasoningPart(item.text)],
        encrypted_content: status === "in_progress" ? null : packReasoning(item.text),
      };
    case "message": {
      const content = item.text === "" ? [] : [textPart(item.text)];
      return { type: "message", id: item.id, role: "assistant", status, content };
    }
    case "call": {
      const call = { id: item.id, call_id: item.callId, name: item.shape?.name ?? item.name };
      if (item.shape?.kind === "custom") {
        const input = status === "in_progress" ? "" : customInput(item.arguments);
        return { type: "custom_tool_call", ...call, input, status };
      }
      const namespace = item.shape?.namespace == null ? {} : { namespace: item.shape.namespace };
      return { type: "function_call", ...call, ...namespace, arguments: item.arguments, status };
    }
  }
}

export function textPart(text: string): Json {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

export function reasoningPart(text: string): Json {
  return { type: "reasoning_text", text };
}

/** The free text of a custom tool's call; what does not have the offered shape is passed on as it was sampled. */
export function customInput(args: string): string {
  try {
    const parsed: unknown = JSON.parse(args);
    if (typeof parsed === "object" && parsed !== null && "input" in parsed && typeof parsed.input === "string")
      return parsed.input;
  } catch {
    // Not JSON: the sampled text is the input.
  }
  return args;
}

export interface ResponseHead {
  id: string;
  createdS: number;
  model: string;
}

/** The response object around the items. Fields that echo the request have the values that are true here. */
export function responseJson(
  head: ResponseHead,
  status: "in_progress" | "completed" | "incomplete" | "failed",
  rest: { output?: readonly Json[]; usage?: Usage; error?: { code: string; message: string }; finish?: NeutralFinish },
): Json {
  return {
    id: head.id,
    object: "response",
    created_at: head.createdS,
    status,
    error: rest.error ?? null,
    incomplete_details: rest.finish === "length" ? { reason: "max_output_tokens" } : null,
    instructions: null,
    metadata: {},
    model: head.model,
    output: rest.output ?? [],
    parallel_tool_calls: true,
    previous_response_id: null,
    store: false,
    temperature: null,
    tool_choice: "auto",
    tools: [],
    top_p: null,
    usage: rest.usage === undefined ? null : usageJson(rest.usage),
  };
}

/** `resp_…`, whatever the engine called its reply. */
export function responseId(id: string): string {
  return id.startsWith("resp_") ? id : `resp_${id}`;
}

function usageJson(usage: Usage): Json {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.promptTokens + usage.completionTokens,
  };
}
