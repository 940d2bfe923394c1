/**
 * Stop 4, one attempt at the engine: send, hand every chunk on as it comes, collect exact ids and log probabilities.
 * What was sampled is returned whatever happened on the way; only an engine that never answered is a refusal.
 */
import { TitoError } from "@tito/format";
import type { DialectError } from "../dialect/neutral.js";
import { parseEngineJson } from "../json/slices.js";
import type { PromptPlan } from "../prompt/source.js";
import { type EngineChunk, readEngineChunk } from "./engine-chunk.js";
import { classify, readFailure } from "./engine-failure.js";
import { Collector, type Defect, type Sampled } from "./sampled.js";
import { SseParser } from "./sse.js";
import type { Upstream, UpstreamResponse } from "./upstream.js";

export type Outcome =
  /** The engine refused, or could not be reached: nothing was sampled. */
  | { kind: "refused"; error: DialectError; status: number | null }
  /** The engine answered. `failure` is set when the answer is not whole. */
  | { kind: "answered"; sampled: Sampled; failure: DialectError | null; raw: string | null; times: SampleTimes };

export interface SampleTimes {
  sentMs: number;
  firstTokenMs: number | null;
  finishedMs: number;
}

export interface SampleHooks {
  /** The engine's 2xx is there. */
  onAnswer(): void;
  /** A chunk with its exact text; the next one is read when this resolves. */
  onChunk(raw: string, chunk: EngineChunk): Promise<void>;
}

/** Why a call was aborted from our side; the reason of its abort signal. */
export type AbortReason = Extract<Defect, "client_gone" | "aborted_by_seal">;

export async function sample(
  upstream: Upstream,
  plan: PromptPlan,
  headers: Record<string, string>,
  signal: AbortSignal,
  hooks: SampleHooks,
): Promise<Outcome> {
  const times: SampleTimes = { sentMs: Date.now(), firstTokenMs: null, finishedMs: 0 };
  const collector = new Collector();
  let failure: DialectError | null = null;
  let raw: string | null = null;
  const take = async (text: string): Promise<boolean> => {
    const chunk = readChunk(text);
    if (chunk === null) {
      collector.mark("unparsed_chunk");
      failure = { kind: "unavailable", message: "the engine sent something that is not JSON", retryable: true };
      return false;
    }
    if (chunk.sampled !== null && chunk.sampled.ids.length > 0) times.firstTokenMs ??= Date.now();
    collector.add(chunk);
    if (chunk.error !== null) {
      failure = classify(chunk.error.status, chunk.error.message, null);
      return false;
    }
    await hooks.onChunk(text, chunk);
    return true;
  };
  try {
    const response = await upstream.send({ method: "POST", path: plan.path, body: plan.body, headers, signal });
    if (response.status < 200 || response.status > 299) {
      const refused = await readFailure(response);
      return { kind: "refused", ...refused };
    }
    hooks.onAnswer();
    const isStream = (response.header("content-type") ?? "").toLowerCase().includes("text/event-stream");
    if (isStream) await readStream(response, collector, take);
    else {
      raw = await response.text();
      await take(raw);
    }
  } catch (error) {
    if (signal.aborted) collector.mark(signal.reason as AbortReason);
    else if (TitoError.is(error) && error.code === "upstream_unavailable") {
      return { kind: "refused", error: { kind: "unavailable", message: error.message, retryable: true }, status: null };
    } else if (TitoError.is(error)) throw error;
    else collector.mark("stream_cut");
  }
  times.finishedMs = Date.now();
  const sampled = collector.result();
  return { kind: "answered", sampled, failure: failure ?? incomplete(sampled), raw, times };
}

async function readStream(
  response: UpstreamResponse,
  collector: Collector,
  take: (text: string) => Promise<boolean>,
): Promise<void> {
  const parser = new SseParser();
  const all = async (events: readonly string[]): Promise<boolean> => {
    for (const data of events) {
      if (data !== "[DONE]" && data !== "" && !(await take(data))) return false;
    }
    return true;
  };
  for await (const bytes of response.chunks) {
    // Leaving the loop destroys the response: an engine that misbehaved is not read to its end.
    if (!(await all(parser.push(bytes)))) return;
  }
  await all(parser.end());
  if (collector.finished === null) collector.mark("stream_cut");
}

function readChunk(text: string): EngineChunk | null {
  try {
    return readEngineChunk(parseEngineJson(text));
  } catch {
    return null;
  }
}

function incomplete(sampled: Sampled): DialectError | null {
  const { defects, finish } = sampled;
  if (defects.includes("aborted_by_seal"))
    return { kind: "sealed", message: "the trajectory was sealed during this call", retryable: false };
  if (defects.includes("client_gone")) return { kind: "unavailable", message: "the call was aborted", retryable: true };
  if (finish === "abort" || finish === "error") {
    return { kind: "unavailable", message: "the engine aborted this call", retryable: true };
  }
  if (finish === null)
    return { kind: "unavailable", message: "the engine's answer ended before it was complete", retryable: true };
  return null;
}
