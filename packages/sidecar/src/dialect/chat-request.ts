/** OpenAI chat completions, request side: body in, neutral request out. The body itself is kept and passed on by others. */
import { type ContentPart, type Message, TitoError, type ToolDefinition } from "@tito/format";
import * as z from "zod/mini";
import { parseJsonText } from "../json/raw-json.js";
import {
  type CutObject,
  cutObject,
  type Ends,
  findSlice,
  memberText,
  sliceArray,
  sliceObject,
  sliceText,
} from "../json/slices.js";
import { completeCallIds } from "./call-ids.js";
import { fillCallIds } from "./chat-call-ids.js";
import type { NeutralRequest } from "./neutral.js";

const number = z.nullish(z.number());
const limit = z.nullish(z.int().check(z.minimum(1, "must be a whole number of at least 1")));
const part = z.looseObject({ type: z.string(), text: z.optional(z.string()) });
const toolCall = z.looseObject({
  id: z.nullish(z.string()),
  type: z.optional(z.string()),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.nullish(z.union([z.string(), z.array(part)])),
  reasoning: z.nullish(z.string()),
  reasoning_content: z.nullish(z.string()),
  tool_calls: z.nullish(z.array(toolCall)),
  tool_call_id: z.nullish(z.string()),
  name: z.nullish(z.string()),
});
const SAMPLING_NUMBERS = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "presence_penalty",
  "frequency_penalty",
  "seed",
  "min_tokens",
  "length_penalty",
];
const body = z.looseObject({
  model: z.nullish(z.string()),
  messages: z.array(message).check(z.minLength(1)),
  tools: z.nullish(
    z.array(
      z.looseObject({
        type: z.string(),
        function: z.looseObject({ name: z.string().check(z.minLength(1, "must not be empty")) }),
      }),
    ),
  ),
  stream: z.nullish(z.boolean()),
  stream_options: z.nullish(z.looseObject({ include_usage: z.nullish(z.boolean()) })),
  n: number,
  max_tokens: limit,
  max_completion_tokens: limit,
  ...Object.fromEntries(SAMPLING_NUMBERS.map((name) => [name, number])),
  logprobs: z.nullish(z.boolean()),
  return_token_ids: z.nullish(z.boolean()),
  stop: z.nullish(z.union([z.string(), z.array(z.string())])),
});

/** Fields that harnesses send and that change neither prompt nor distribution. */
const HARMLESS = new Set([
  "user",
  "store",
  "metadata",
  "service_tier",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_retention",
  "safety_identifier",
  "session_id",
  "verbosity",
]);
/** Not numbers, but they shape what can be sampled. */
const CONSTRAINTS = [
  "tool_choice",
  "response_format",
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "logit_bias",
  "bad_words",
  "allowed_token_ids",
  "stop_token_ids",
  "ignore_eos",
  "thinking_token_budget",
  "vllm_xargs",
];
/** A list or an object of nothing constrains nothing. */
const EMPTY = /^(\{\s*\}|\[\s*\])$/;
/** What can not be captured faithfully, and why. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["truncate_prompt_tokens", "the engine would drop prompt ids silently"],
  ["use_beam_search", "beam search does not sample"],
  ["best_of", "discarded samples can not be recorded"],
  ["functions", "use tools: the functions field is deprecated"],
  ["function_call", "use tool_choice: the function_call field is deprecated"],
  ["audio", "only text can be captured"],
]);

/**
 * Reads a chat completions body.
 * @throws TitoError `bad_request` (not such a body) or `unsupported` (legal, but not faithfully recordable); the field is named.
 */
export function parseChatRequest(bytes: Uint8Array): NeutralRequest {
  const text = decodeUtf8(bytes);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("bad_request", `the body is not JSON: ${cause instanceof Error ? cause.message : "?"}`, {
      cause,
    });
  }
  const parsed = checkShape(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new TitoError("bad_request", `${issue.path.map(String).join(".") || "body"}: ${issue.message}`);
  }
  const request = parsed.data;
  const sent = cutObject(text);
  refuse(request, sent);
  const messages = completeCallIds(request.messages.map(readMessage));
  const chatBody = fillCallIds(sent, messages);
  const toolChoice = request.tool_choice === "none" ? "none" : "auto";
  return {
    dialect: "chat",
    stream: request.stream === true,
    includeUsage: request.stream_options?.include_usage === true,
    model: request.model ?? null,
    messages,
    tools: readTools(chatBody),
    toolChoice,
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    sampling: Object.fromEntries(
      SAMPLING_NUMBERS.flatMap((name) => (typeof request[name] === "number" ? [[name, request[name]]] : [])),
    ),
    stop: typeof request.stop === "string" ? [request.stop] : (request.stop ?? []),
    wantsLogprobs: request.logprobs === true,
    ignored: chatBody.slices.map((slice) => slice.key).filter((key) => HARMLESS.has(key)),
    constraints: readConstraints(chatBody),
    chatBody,
  };
}

/** The checker collects what is wrong in lists that are longer than a stack when nearly everything is. */
function checkShape(json: unknown): ReturnType<typeof body.safeParse> {
  try {
    return body.safeParse(json);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new TitoError("bad_request", "body: hardly anything in it is of a chat request", { cause });
  }
}

/** Strict UTF-8. @throws TitoError `bad_request`. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new TitoError("bad_request", "the body is not valid UTF-8", { cause });
  }
}

function refuse(request: z.output<typeof body>, chatBody: CutObject): void {
  if (typeof request.n === "number" && request.n !== 1) {
    throw new TitoError(
      "unsupported",
      `n: ${request.n} answers to one request can not be recorded as one turn; send n requests`,
    );
  }
  for (const [name, why] of REFUSED) {
    if ((memberText(chatBody, name) ?? "null") !== "null") throw new TitoError("unsupported", `${name}: ${why}`);
  }
  if (request.include_reasoning === false) {
    throw new TitoError("unsupported", "include_reasoning: false makes the engine hide token ids");
  }
  const parts = request.messages.flatMap((one) => (Array.isArray(one.content) ? one.content : []));
  const other = parts.find((one) => one.type !== "text" && one.type !== "refusal");
  if (other !== undefined) {
    throw new TitoError(
      "unsupported",
      `messages: a content part of type ${JSON.stringify(other.type.slice(0, 40))}: only text can be captured`,
    );
  }
}

function readMessage(source: z.output<typeof message>): Message {
  const reasoning = source.reasoning ?? source.reasoning_content;
  return {
    role: source.role,
    ...(source.content === undefined ? {} : { content: readContent(source.content) }),
    ...(typeof reasoning === "string" ? { reasoning } : {}),
    ...(source.tool_calls === undefined || source.tool_calls === null
      ? {}
      : {
          tool_calls: source.tool_calls.map((call) => ({
            id: call.id ?? "",
            name: call.function.name,
            arguments: call.function.arguments,
          })),
        }),
    ...(typeof source.tool_call_id === "string" ? { tool_call_id: source.tool_call_id } : {}),
    ...(typeof source.name === "string" ? { name: source.name } : {}),
  };
}

function readContent(content: string | null | z.output<typeof part>[]): string | null | ContentPart[] {
  if (!Array.isArray(content)) return content;
  return content.map(
    (one): ContentPart =>
      one.type === "text" ? { type: "text", text: one.text ?? "" } : { type: "other", kind: one.type },
  );
}

/** Tools with their schemas as the harness spelled them. */
function readTools(chatBody: CutObject): ToolDefinition[] {
  const { text } = chatBody;
  const tools = findSlice(chatBody.slices, "tools");
  if (tools === undefined || sliceText(text, tools) === "null") return [];
  const ends: Ends = new Map();
  return sliceArray(text, tools.valueStart, ends).map((item) => {
    const definition = findSlice(sliceObject(text, item.start, ends), "function");
    const slices = definition === undefined ? [] : sliceObject(text, definition.valueStart, ends);
    const read = (key: string): string | undefined => memberText({ text, slices }, key);
    const description = read("description");
    const parameters = read("parameters");
    const strict = read("strict");
    return {
      name: JSON.parse(read("name") ?? '""') as string,
      ...(description?.startsWith('"') ? { description: JSON.parse(description) as string } : {}),
      ...(parameters === undefined || parameters === "null" ? {} : { parameters }),
      ...(strict === "true" || strict === "false" ? { strict: strict === "true" } : {}),
    };
  });
}

function readConstraints(chatBody: CutObject): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of CONSTRAINTS) {
    const value = memberText(chatBody, name) ?? "null";
    const isPlain = name === "tool_choice" && (value === '"auto"' || value === '"none"');
    const isText = name === "response_format" && /^\{\s*"type"\s*:\s*"text"\s*\}$/.test(value);
    if (value === "null" || value === "false" || EMPTY.test(value) || isPlain || isText) continue;
    // It goes on record as a value: one that is nested without end can not.
    parseJsonText(value);
    found.set(name, value);
  }
  return found;
}
