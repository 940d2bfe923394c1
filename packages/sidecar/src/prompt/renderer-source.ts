/**
 * The renderer source of prompt ids: the sidecar renders and tokenizes with a renderer bundle, sends exact ids, and parses the exact ids that come back.
 * Rendering and parsing happen in the renderer's thread; here nothing is tokenized.
 */
import { TitoError } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import type { SidecarConfig } from "../config/config.js";
import type { EngineAdapter } from "../engine-adapter/adapter.js";
import type { PromptPlan } from "../sample/prompt-plan.js";
import { effectiveSampling, lowest } from "../sample/sampling.js";
import type { SentCall } from "../sample/sent-call.js";
import type { StreamTrust } from "../sample/stream-trust.js";
import { type Incremental, incrementalPrompt } from "./incremental.js";
import { roomLeft } from "./room.js";
import type { PromptInput, PromptSource } from "./source.js";
import { templateArgumentsOf } from "./template-arguments.js";
import { TurnReader } from "./turn-reader.js";

/** Ids at the prompt's end that tell the parser whether the prompt opened a reasoning block. */
const TAIL_IDS = 32;

export interface RendererFacts {
  /** Streamed replies carry ids, as far as is known. */
  streams: Pick<StreamTrust, "reason">;
  /** Prompt and answer together; known from the engine or from the flag. */
  contextTokensMax: number;
  adapter: Pick<EngineAdapter, "ids">;
}

/** The exact prompt of a request, and how it came about. */
type BuiltPrompt = Pick<PromptPlan, "promptMode" | "junction" | "specialTextEscaped" | "checkpoint" | "evidence"> & {
  promptIds: Int32Array;
};

export function rendererSource(
  config: SidecarConfig,
  facts: RendererFacts,
  renderer: Renderer,
  incremental: Incremental | null,
): PromptSource {
  const build = (input: PromptInput) => buildPrompt(renderer, incremental, input);
  return {
    countTokens: async (input) => (await build(input)).promptIds.length,
    prepare: async (input): Promise<PromptPlan> => {
      const { request } = input;
      refuseForcedCalls(request.constraints);
      const prompt = await build(input);
      const { promptIds } = prompt;
      const room = roomLeft(facts.contextTokensMax, promptIds.length);
      const limit = lowest(config.maxOutputTokens, room)!;
      const maxTokens = lowest(request.maxOutputTokens, limit)!;
      const { added, effective } = effectiveSampling(request, config.sampling, limit);
      // Also for a body: what was sampled before an abort is known only of a stream.
      const streamReason = facts.streams.reason;
      const stream = streamReason === null;
      const callOf = (ids: Int32Array, tokens: number): SentCall =>
        facts.adapter.ids({
          request,
          model: config.model,
          promptIds: ids,
          maxTokens: tokens,
          stream,
          sampling: added,
          stopTokenIds: renderer.stopIds,
        });
      const context = {
        promptTail: promptIds.slice(-TAIL_IDS),
        promptTokens: promptIds.length,
        tools: request.tools,
      };
      return {
        ...prompt,
        rendererContract: renderer.contractId,
        call: callOf(promptIds, maxTokens),
        stream,
        streamReason,
        passthrough: false,
        sampling: effective,
        resume: (sampledIds) => {
          const rest = maxTokens - sampledIds.length;
          return rest <= 0 ? null : callOf(joined(promptIds, sampledIds), rest);
        },
        reader: () => new TurnReader(renderer, context, request),
        textOf: (ids) => renderer.decode(ids),
      };
    },
  };
}

async function buildPrompt(
  renderer: Renderer,
  incremental: Incremental | null,
  input: PromptInput,
): Promise<BuiltPrompt> {
  const { messages, tools } = input.request;
  const given = templateArgumentsOf(input.request.chatBody);
  const options = given === null ? {} : { templateArguments: given };
  const found = incremental === null ? null : await incrementalPrompt(renderer, incremental, input, options);
  if (found?.kind === "joined") return { ...found.prompt, promptMode: "incremental" };
  const { ids, special_text_escaped } = await renderer.render(messages, tools, options);
  return {
    promptIds: ids,
    promptMode: "full_history",
    junction: null,
    specialTextEscaped: special_text_escaped,
    checkpoint: null,
    evidence: found === null ? {} : found.evidence,
  };
}

/** An engine that gets ids does not know the tools, so that it can not be made to call one. */
function refuseForcedCalls(constraints: ReadonlyMap<string, string> | undefined): void {
  const choice = constraints?.get("tool_choice");
  if (choice === undefined) return;
  throw new TitoError(
    "unsupported",
    `tool_choice: ${choice.slice(0, 60)} can not be forced on an engine that gets ids`,
    {
      hint: 'use "auto" or "none", or --renderer engine',
    },
  );
}

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const out = new Int32Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}
