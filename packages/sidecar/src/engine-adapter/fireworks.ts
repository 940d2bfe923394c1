/**
 * Fireworks: OpenAI's routes with ids. From documented wire shapes. `sampling_logprob` is what a token was sampled with, `logprob` the raw model's.
 * Its API takes stop strings only, at most four: turns end at the deployment's own end-of-turn ids.
 */
import { TitoError } from "@tito/format";
import { asArray, asCount, asObject } from "../json/narrow.js";
import { editObject } from "../json/slices.js";
import { type LogprobEntry, readEngineChunk, readLogprob } from "../sample/engine-chunk.js";
import type { ChunkReader, SentCall } from "../sample/sent-call.js";
import type { ChatCall, EngineAdapter, IdsCall } from "./adapter.js";
import { likeliestFirst } from "./openai-reply.js";
import { VLLM_CHAT_PATH, VLLM_COMPLETIONS_PATH, vllmChatBody } from "./vllm-body.js";

const STOPS_MAX = 4;
const CONSTRAINTS: ReadonlySet<string> = new Set(["logit_bias", "ignore_eos", "tool_choice", "response_format"]);

export const fireworks: EngineAdapter = {
  kind: "fireworks",
  canStream: true,
  chat: chatCall,
  ids: idsCall,
  likeliest: likeliestFirst,
  logprobMode: (replies) => (replies.every(hasSamplingLogprob) ? "processed" : "raw"),
  version: async () => null,
  weightVersion: async () => null,
  contextTokens: async ({ modelEntry }) => {
    const entry = asObject(JSON.parse(modelEntry));
    return asCount(entry?.context_length) ?? asCount(entry?.max_model_len);
  },
  tokenizeChat: async () => null,
  countTokens: null,
  headers: (trajectoryId) => ({ "x-multi-turn-session-id": trajectoryId }),
};

/** An omitted overflow behaviour lowers the limit in silence. */
const ASKED: readonly (readonly [string, string])[] = [
  ["return_token_ids", "true"],
  ["context_length_exceeded_behavior", '"error"'],
];

function chatCall({ chatBody, ...fields }: ChatCall): SentCall {
  const body = editObject(
    vllmChatBody(chatBody, { ...fields, sampling: spelled(fields.sampling) }),
    new Map<string, string | null>(ASKED),
  );
  return { path: VLLM_CHAT_PATH, body, reader: samplingReader };
}

/** @throws TitoError `unsupported` for what the route has no field for. */
function idsCall(call: IdsCall): SentCall {
  const { request } = call;
  refuseUnknown(request);
  const own = Object.entries(request.sampling).map(([name, value]): [string, string] => [name, JSON.stringify(value)]);
  const members = new Map<string, string>([
    ["model", JSON.stringify(call.model)],
    ["prompt", `[${call.promptIds.join(",")}]`],
    ["max_tokens", String(call.maxTokens)],
    ["stream", String(call.stream)],
    ["logprobs", "true"],
    ["top_logprobs", "1"],
    ["raw_output", "false"],
    ...ASKED,
    ...spelled(call.sampling),
    ...spelled(new Map(own)),
  ]);
  for (const [name, text] of request.constraints ?? []) if (name !== "tool_choice") members.set(name, text);
  if (request.stop.length > 0) members.set("stop", JSON.stringify(request.stop));
  const body = `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  return { path: VLLM_COMPLETIONS_PATH, body, reader: samplingReader };
}

/** Its top_k is off at 0. */
function spelled(sampling: ReadonlyMap<string, string>): Map<string, string> {
  const all = new Map(sampling);
  if (Number(all.get("top_k")) < 0) all.set("top_k", "0");
  return all;
}

const entriesOf = (json: unknown): readonly unknown[] => {
  const choice = asObject(asArray(asObject(json)?.choices)?.[0]);
  return asArray(asObject(choice?.logprobs)?.content) ?? [];
};

const hasSamplingLogprob = (json: unknown): boolean =>
  entriesOf(json).every((entry) => typeof asObject(entry)?.sampling_logprob === "number");

/** The two values are not mixed within a reply: once one token told what it was sampled with, each has to. */
function samplingReader(): ChunkReader {
  let told = false;
  const behaviourValue = (entry: unknown): LogprobEntry => {
    const { sampling_logprob, logprob } = asObject(entry) ?? {};
    told ||= sampling_logprob !== undefined && sampling_logprob !== null;
    return readLogprob(told ? sampling_logprob : logprob);
  };
  return (json) => {
    const chunk = readEngineChunk(json);
    const entries = entriesOf(json);
    return entries.length === 0 ? chunk : { ...chunk, logprobs: entries.map(behaviourValue) };
  };
}

function refuseUnknown(request: IdsCall["request"]): void {
  const names = [...(request.constraints?.keys() ?? [])].filter((name) => !CONSTRAINTS.has(name));
  if (request.stop.length > STOPS_MAX) names.push(`more than ${STOPS_MAX} stop strings`);
  if (names.length === 0) return;
  throw new TitoError("unsupported", `Fireworks can not be asked for ${names.join(", ")}`, { hint: "leave it out" });
}
