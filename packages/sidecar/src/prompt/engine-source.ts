/** The engine source of prompt ids: the harness's messages go on unchanged, the engine renders them and says which ids it used. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import type { SidecarConfig } from "../config/config.js";
import type { NeutralRequest, ReplyEvent } from "../dialect/neutral.js";
import type { EngineAdapter } from "../engine-adapter/adapter.js";
import { type CutObject, cutObject, findSlice, memberText } from "../json/slices.js";
import { CallDeltas } from "../sample/call-deltas.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import { finishOf } from "../sample/finish.js";
import type { PromptPlan, ReplyReader } from "../sample/prompt-plan.js";
import type { Sampled } from "../sample/sampled.js";
import { effectiveSampling, lowest } from "../sample/sampling.js";
import type { StreamTrust, UnstreamedReason } from "../sample/stream-trust.js";
import type { Upstream } from "../sample/upstream.js";
import { usageOf } from "../sample/usage.js";
import { chatBody } from "./chat-body.js";
import { roomLeft } from "./room.js";
import type { PromptSource } from "./source.js";

/** Request fields that the template sees beside messages and tools; they are part of the encoding contract. */
const TEMPLATE_FIELDS = [
  "chat_template_kwargs",
  "chat_template",
  "reasoning_effort",
  "documents",
  "add_generation_prompt",
  "continue_final_message",
  "add_special_tokens",
];

export interface EngineFacts {
  /** Digest over engine, version and the ids of fixed probe chats. */
  contract: string;
  /** Streamed replies carry ids, also with tool calls, as far as is known. */
  streams: Pick<StreamTrust, "reason">;
  /** One whose chat route gives ids. */
  adapter: EngineAdapter;
}

export function engineSource(config: SidecarConfig, facts: EngineFacts, upstream: Upstream): PromptSource {
  const { chat, countTokens } = facts.adapter;
  if (chat === null) throw new TitoError("internal", `${facts.adapter.kind} renders no chat`);
  if (countTokens === null && config.maxContextTokens !== null) {
    throw new TitoError("usage", `--max-context-tokens: ${facts.adapter.kind} is not asked to count prompts`, {
      hint: "give --renderer BUNDLE_DIR, which counts by itself, or leave the limit to the engine",
    });
  }
  const count = async (body: string): Promise<number> => {
    if (countTokens !== null) return countTokens(upstream, config.model, body);
    throw new TitoError("unsupported", `${facts.adapter.kind} is not asked to count a prompt's tokens`, {
      hint: "with --renderer the sidecar counts by itself",
    });
  };
  return {
    countTokens: ({ request }) => count(request.chatBody?.text ?? chatBody(request)),
    prepare: async ({ request }): Promise<PromptPlan> => {
      const body = request.chatBody ?? cutObject(chatBody(request));
      // Without a limit of ours the engine's own refusal is exact, and costs no extra round trip.
      const room = config.maxContextTokens === null ? null : roomLeft(config.maxContextTokens, await count(body.text));
      const limit = lowest(config.maxOutputTokens, room);
      const sampling = effectiveSampling(request, config.sampling, limit);
      const streamReason = whyUnstreamed(facts.streams.reason, request, body);
      const stream = streamReason === null && streamable(request, body);
      const capped = limit === null ? null : lowest(request.maxOutputTokens, limit);
      return {
        promptIds: null,
        promptMode: "full_history",
        junction: null,
        checkpoint: null,
        evidence: {},
        specialTextEscaped: false,
        rendererContract: contractOf(facts.contract, body),
        call: chat({
          chatBody: body.text,
          members: body.slices,
          model: config.model,
          stream,
          sampling: sampling.added,
          maxOutputTokens: capped,
        }),
        stream,
        streamReason,
        passthrough: request.dialect === "chat" && (stream || !request.stream),
        sampling: sampling.effective,
        resume: () => null,
        reader: (name) => chatReader(request, name),
        textOf: async (ids) => (await facts.adapter.textOf?.(upstream, config.model, ids)) ?? null,
      };
    },
  };
}

/** A harness that wants the evidence in its own stream gets it from an engine's stream alone, damaged or not. */
function whyUnstreamed(
  reason: UnstreamedReason | null,
  request: NeutralRequest,
  body: CutObject,
): UnstreamedReason | null {
  const wants = request.wantsLogprobs || memberText(body, "return_token_ids") === "true";
  return reason === "repeated_damage" && request.stream && request.dialect === "chat" && wants ? null : reason;
}

/** Engines score a prompt in whole bodies only; all else is asked for as a stream, so that what was sampled before an abort is known. */
function streamable(request: NeutralRequest, body: CutObject): boolean {
  return request.stream || findSlice(body.slices, "prompt_logprobs") === undefined;
}

/** `engine:<sha256>`; template arguments of the request are folded in, because they change the rendering. */
function contractOf(base: string, body: CutObject): string {
  const own = TEMPLATE_FIELDS.flatMap((name) => {
    const text = memberText(body, name);
    return text === undefined ? [] : [[name, text]];
  });
  if (own.length === 0) return `engine:${base}`;
  return `engine:${createHash("sha256").update(base).update(JSON.stringify(own)).digest("hex")}`;
}

/** The engine has parsed already: nothing is waited for. */
interface ChatReader extends ReplyReader {
  read(chunk: EngineChunk): ReplyEvent[];
  end(sampled: Sampled): ReplyEvent[];
}

/** Reads chat chunks, or one whole chat body, into events. `name`: what ids of calls are made of; null for a reply that went past the sidecar. */
export function chatReader(request: Pick<NeutralRequest, "stop">, name: string | null): ChatReader {
  let started = false;
  let replyId = "";
  const calls = new CallDeltas(name);
  const read = (chunk: EngineChunk): ReplyEvent[] => {
    const events: ReplyEvent[] = [];
    if (!started && chunk.error === null) {
      started = true;
      const promptTokens = chunk.promptIds?.length;
      const { id, createdS, model } = chunk;
      replyId = id ?? "";
      events.push({ type: "start", id: id ?? "", createdS: createdS ?? 0, model: model ?? "", promptTokens });
    }
    if (chunk.reasoning !== null && chunk.reasoning !== "") events.push({ type: "reasoning", text: chunk.reasoning });
    if (chunk.content !== null && chunk.content !== "") events.push({ type: "content", text: chunk.content });
    for (const tool of chunk.tools) events.push(...calls.read(tool, replyId));
    return events;
  };
  const end = (sampled: Sampled): ReplyEvent[] => {
    const stop = sampled.stopReason;
    const stopSequence = typeof stop === "string" && request.stop.includes(stop) ? stop : null;
    return [
      ...calls.rest(),
      { type: "finish", reason: finishOf(sampled.finish, calls.count > 0), usage: usageOf(sampled), stopSequence },
    ];
  };
  return { read, end, malformed: () => null, close: () => undefined };
}
