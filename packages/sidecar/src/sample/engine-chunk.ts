/**
 * One piece of an engine's reply, read: a stream chunk or a whole body in vLLM's shape (`return_token_ids`).
 * Reading never fails: a field of a wrong type is a missing field, and what is missing is found by the invariants.
 */
import type { VersionSpan } from "@tito/format";
import { asArray, asCount, asObject, asString } from "../json/narrow.js";

/** A log probability as the engine printed it, or what stood in its place. `positive`: a number that no log probability can be. */
export type LogprobEntry = { value: number } | { was: string; positive?: true };

interface ToolDelta {
  index: number;
  id: string | null;
  name: string | null;
  arguments: string;
}

export interface EngineChunk {
  id: string | null;
  model: string | null;
  createdS: number | null;
  /** An error sent in place of a reply, or inside the stream. */
  error: { message: string; code: string | null; status: number | null } | null;
  promptIds: Int32Array | null;
  /** Null: the chunk carried none. `valid` is false when an entry was no int32. */
  sampled: { ids: number[]; valid: boolean } | null;
  logprobs: LogprobEntry[] | null;
  finish: string | null;
  stopReason: number | string | null;
  usage: { prompt: number | null; completion: number | null; cached: number | null; reasoning: number | null } | null;
  versions: VersionSpan[] | null;
  version: string | null;
  /** Under which key the engine sends reasoning. */
  reasoningKey: "reasoning" | "reasoning_content" | null;
  reasoning: string | null;
  content: string | null;
  tools: ToolDelta[];
  /** There is text or a call: something was sampled. */
  hasOutput: boolean;
  /** Of a completions chunk: where its text begins, by the engine's own offset, and the text; null where it tells none. */
  position: { offset: number; text: string } | null;
  /** More than one choice, or one that is not the first. */
  extraChoices: boolean;
}

/** A piece that says nothing: what readers of other shapes fill in. */
export const NO_CHUNK: Readonly<EngineChunk> = {
  id: null,
  model: null,
  createdS: null,
  error: null,
  promptIds: null,
  sampled: null,
  logprobs: null,
  finish: null,
  stopReason: null,
  usage: null,
  versions: null,
  version: null,
  reasoningKey: null,
  reasoning: null,
  content: null,
  tools: [],
  hasOutput: false,
  position: null,
  extraChoices: false,
};

/** vLLM prints this where a log probability is minus infinity: JSON has no such number. */
const LOGPROB_FLOOR = -9999;

/**
 * Largest log probability that is taken for one. Engines compute in float32, where the probability of a token that is nearly certain can come out
 * a few units in the last place (6e-8 each) above 1.
 */
const LOGPROB_MAX = 1e-6;

/** Reads a parsed chunk or body. */
export function readEngineChunk(json: unknown): EngineChunk {
  const top = asObject(json) ?? {};
  const choices = asArray(top.choices) ?? [];
  const choice = asObject(choices[0]) ?? {};
  const message = asObject(choice.delta) ?? asObject(choice.message) ?? {};
  const reasoningKey =
    asString(message.reasoning) !== null
      ? "reasoning"
      : asString(message.reasoning_content) !== null
        ? "reasoning_content"
        : null;
  const meta = asObject(top.meta_info) ?? {};
  return {
    id: asString(top.id),
    model: asString(top.model),
    createdS: asCount(top.created),
    error: readError(top.error ?? bareError(top)),
    promptIds: readPromptIds(top.prompt_token_ids ?? choice.prompt_token_ids),
    sampled: readIds(choice.token_ids),
    logprobs: readLogprobs(choice.logprobs),
    finish: asString(choice.finish_reason),
    stopReason: asString(choice.stop_reason) ?? asCount(choice.stop_reason),
    usage: readUsage(top.usage),
    versions: readVersions(choice.weight_versions),
    version: asVersion(choice.weight_version) ?? asVersion(top.weight_version) ?? asVersion(meta.weight_version),
    reasoningKey,
    reasoning: reasoningKey === null ? null : asString(message[reasoningKey]),
    content: asString(message.content),
    tools: (asArray(message.tool_calls) ?? []).flatMap(readTool),
    hasOutput: [message.content, message.reasoning, message.reasoning_content, choice.text, message.tool_calls].some(
      hasSomething,
    ),
    position: readPosition(choice),
    extraChoices: choices.length > 1 || (asCount(choice.index) ?? 0) !== 0,
  };
}

function readPosition(choice: { readonly [key: string]: unknown }): EngineChunk["position"] {
  const offset = asCount(asArray(asObject(choice.logprobs)?.text_offset)?.[0]);
  return offset === null ? null : { offset, text: asString(choice.text) ?? "" };
}

function hasSomething(value: unknown): boolean {
  return (typeof value === "string" || Array.isArray(value)) && value.length > 0;
}

/** An error that stands in place of a reply without a wrapping: `object` says so, or FastAPI's `detail` is all that there is. */
function bareError(top: { readonly [key: string]: unknown }): unknown {
  if (top.choices !== undefined) return null;
  return top.object === "error" ? top : asString(top.detail);
}

/** The error of a body or of a stream event: wrapped, flat, or FastAPI's `detail`. */
export function readError(value: unknown): EngineChunk["error"] {
  if (typeof value === "string") return { message: value, code: null, status: null };
  const error = asObject(value);
  if (error === null) return null;
  const { code, type } = error;
  return {
    message: asString(error.message) ?? shortJson(error),
    // llama.cpp tells an overflow by its type and has a status for a code.
    code: asString(code) ?? (typeof type === "string" && type.startsWith("exceed_") ? type : null),
    status: typeof code === "string" && /^[1-5]\d\d$/.test(code) ? Number(code) : asCount(code),
  };
}

/** Nested without end it has no text: then only that it is there is told. */
function shortJson(value: object): string {
  try {
    return JSON.stringify(value).slice(0, 500);
  } catch {
    return "an error that can not be shown";
  }
}

export function readPromptIds(value: unknown): Int32Array | null {
  const items = asArray(value);
  if (items === null || items.length === 0) return null;
  const ids = new Int32Array(items.length);
  for (let i = 0; i < items.length; i += 1) {
    const item = items[i];
    if (!isTokenId(item)) return null;
    ids[i] = item;
  }
  return ids;
}

/** A list of ids; null when it is no list. */
export function readIds(value: unknown): { ids: number[]; valid: boolean } | null {
  const items = asArray(value);
  if (items === null) return null;
  const valid = items.every(isTokenId);
  return { ids: valid ? (items as number[]) : [], valid };
}

/** An int32 of at least 0. */
function isTokenId(item: unknown): item is number {
  return typeof item === "number" && (item | 0) === item && item >= 0;
}

/** Chat sends `content[].logprob`, completions `token_logprobs[]`. */
function readLogprobs(value: unknown): LogprobEntry[] | null {
  const logprobs = asObject(value);
  const content = asArray(logprobs?.content);
  if (content !== null) return content.map((entry) => readLogprob(asObject(entry)?.logprob));
  return asArray(logprobs?.token_logprobs)?.map(readLogprob) ?? null;
}

export function readLogprob(value: unknown): LogprobEntry {
  if ((typeof value === "number" && value > LOGPROB_MAX) || value === "Infinity")
    return { was: String(value), positive: true };
  if (typeof value === "number" && Number.isFinite(value) && value > LOGPROB_FLOOR) return { value };
  return { was: value === undefined ? "missing" : String(value).slice(0, 40) };
}

function readUsage(value: unknown): EngineChunk["usage"] {
  const usage = asObject(value);
  if (usage === null) return null;
  return {
    prompt: asCount(usage.prompt_tokens),
    completion: asCount(usage.completion_tokens),
    cached: asCount(asObject(usage.prompt_tokens_details)?.cached_tokens),
    reasoning: asCount(asObject(usage.completion_tokens_details)?.reasoning_tokens),
  };
}

/** A name, or a number where trainers count. */
export function asVersion(value: unknown): string | null {
  return asCount(value)?.toString() ?? asString(value);
}

export function readVersions(value: unknown): VersionSpan[] | null {
  const spans = (asArray(value) ?? []).flatMap((item) => {
    const span = asObject(item);
    const [version, start, end] = [asVersion(span?.version), asCount(span?.start), asCount(span?.end)];
    return version === null || start === null || end === null ? [] : [{ version, start, end }];
  });
  return spans.length === 0 ? null : spans;
}

/** What is no object is no call. */
function readTool(value: unknown, position: number): ToolDelta[] {
  const call = asObject(value);
  if (call === null) return [];
  const named = asObject(call.function) ?? {};
  return [
    {
      index: asCount(call.index) ?? position,
      id: asString(call.id),
      name: asString(named.name),
      arguments: asString(named.arguments) ?? "",
    },
  ];
}
