/**
 * vLLM's completions endpoint, which takes prompt ids, and its chat endpoint: which fields ask for exact ids and log probabilities, added to a body that stays otherwise as it is.
 */
import type { NeutralRequest } from "../dialect/neutral.js";
import { editObject, memberText, type Slice, sliceObject } from "../json/slices.js";

export const VLLM_CHAT_PATH = "/v1/chat/completions";
export const VLLM_COMPLETIONS_PATH = "/v1/completions";
export const VLLM_GENERATE_PATH = "/inference/v1/generate";

export interface VllmFields {
  model: string;
  stream: boolean;
  /** Sampling fields that the harness left out, as JSON text. */
  sampling: ReadonlyMap<string, string>;
  /** Lowers an output limit of the body, or sets one where there is none; null leaves it alone. */
  maxOutputTokens: number | null;
  /** Members of the body, where they are known already. */
  members?: readonly Slice[];
}

/** `body` with our fields set; every other member keeps the harness's own JSON text. */
export function vllmChatBody(body: string, fields: VllmFields): string {
  const slices = fields.members ?? sliceObject(body);
  const edits = new Map<string, string | null>(fields.sampling);
  edits.set("model", JSON.stringify(fields.model));
  edits.set("stream", String(fields.stream));
  edits.set("logprobs", "true");
  edits.set("return_token_ids", "true");
  edits.set("stream_options", fields.stream ? usageOption(memberText({ text: body, slices }, "stream_options")) : null);
  if (fields.maxOutputTokens !== null) {
    edits.set("max_tokens", null);
    edits.set("max_completion_tokens", String(fields.maxOutputTokens));
  }
  return editObject(body, edits, slices);
}

/** Usage is always asked for: it is what the ids are counted against. */
function usageOption(own: string | undefined): string {
  return own?.startsWith("{") ? editObject(own, new Map([["include_usage", "true"]])) : '{"include_usage":true}';
}

export interface VllmCompletion {
  model: string;
  promptIds: Int32Array;
  maxTokens: number;
  stream: boolean;
  /** Sampling fields that the harness left out, as JSON text. */
  sampling: ReadonlyMap<string, string>;
  /** Ids that end a turn; ids that the request names itself come on top. */
  stopTokenIds: readonly number[];
}

/** Body for prompt ids. Special tokens stay in the text that stop strings are looked for in; everything is said explicitly, because defaults cut and filter. */
export function vllmCompletionBody(
  request: Pick<NeutralRequest, "sampling" | "stop" | "constraints">,
  fields: VllmCompletion,
): string {
  const members = new Map<string, string>([
    ["model", JSON.stringify(fields.model)],
    ["prompt", `[${fields.promptIds.join(",")}]`],
    ["max_tokens", String(fields.maxTokens)],
    ["stream", String(fields.stream)],
    ["logprobs", "1"],
    ["return_token_ids", "true"],
    ["return_tokens_as_token_ids", "true"],
    ["skip_special_tokens", "false"],
    ["spaces_between_special_tokens", "false"],
    ["add_special_tokens", "false"],
    ...fields.sampling,
    ...Object.entries(request.sampling).map(([name, value]): [string, string] => [name, JSON.stringify(value)]),
    ...(request.constraints ?? []),
    ["stop_token_ids", JSON.stringify(stopTokenIds(request.constraints, fields.stopTokenIds))],
  ]);
  if (request.stop.length > 0) members.set("stop", JSON.stringify(request.stop));
  if (fields.stream) members.set("stream_options", '{"include_usage":true}');
  return objectText(members);
}

function stopTokenIds(constraints: NeutralRequest["constraints"], own: readonly number[]): unknown[] {
  const given: unknown = JSON.parse(constraints?.get("stop_token_ids") ?? "[]");
  return [...new Set([...own, ...(Array.isArray(given) ? given : [])])];
}

/** Sampling parameters that the token route takes by the same names. */
const GENERATE_CONSTRAINTS: ReadonlySet<string> = new Set(["stop_token_ids", "ignore_eos", "tool_choice"]);

/** The token route takes sampling parameters alone: what the completions route turns into some is not for it. */
export function generates(request: Pick<NeutralRequest, "constraints">): boolean {
  return [...(request.constraints?.keys() ?? [])].every((name) => GENERATE_CONSTRAINTS.has(name));
}

/** Body for prompt ids on the token route; the engine's own parameter names, everything said explicitly. */
export function vllmGenerateBody(
  request: Pick<NeutralRequest, "sampling" | "stop" | "constraints">,
  fields: VllmCompletion,
): string {
  const sampling = new Map<string, string>([
    ["max_tokens", String(fields.maxTokens)],
    ["logprobs", "1"],
    ["skip_special_tokens", "false"],
    ["spaces_between_special_tokens", "false"],
    ...fields.sampling,
    ...Object.entries(request.sampling).map(([name, value]): [string, string] => [name, JSON.stringify(value)]),
    ["stop_token_ids", JSON.stringify(stopTokenIds(request.constraints, fields.stopTokenIds))],
  ]);
  const ignoreEos = request.constraints?.get("ignore_eos");
  if (ignoreEos !== undefined) sampling.set("ignore_eos", ignoreEos);
  if (request.stop.length > 0) sampling.set("stop", JSON.stringify(request.stop));
  const members = new Map<string, string>([
    ["model", JSON.stringify(fields.model)],
    ["token_ids", `[${fields.promptIds.join(",")}]`],
    ["sampling_params", objectText(sampling)],
    ["stream", String(fields.stream)],
    ["return_token_ids", "true"],
  ]);
  if (fields.stream) members.set("stream_options", '{"include_usage":true}');
  return objectText(members);
}

function objectText(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}
