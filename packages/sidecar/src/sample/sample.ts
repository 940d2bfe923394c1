/**
 * Stop 4, one attempt at the engine: send, hand every chunk on as it comes, collect exact ids and log probabilities.
 * What was sampled is returned whatever happened on the way; only an engine that never answered is a refusal.
 */
import { TitoError } from "@tito/format";
import type { DialectError } from "../dialect/neutral.js";
import { parseEngineJson } from "../json/slices.js";
import { pause, retryDelay } from "./attempts.js";
import { type EngineChunk, NO_CHUNK } from "./engine-chunk.js";
import { classify, readFailure, withCode } from "./engine-failure.js";
import type { PromptPlan } from "./prompt-plan.js";
import { Collector, type Defect, type Sampled } from "./sampled.js";
import type { ChunkReader, SentCall } from "./sent-call.js";
import { SseParser } from "./sse.js";
import { StaleConnection, type Upstream, type UpstreamResponse } from "./upstream.js";
import { withNamedVersions } from "./weight-version.js";

export type Outcome =
  /** The engine refused, or could not be reached: nothing was sampled. */
  | Refusal
  /** The engine answered. `failure` is set when the answer is not whole. */
  | { kind: "answered"; sampled: Sampled; failure: DialectError | null; raw: string | null; times: SampleTimes };

interface Refusal {
  kind: "refused";
  error: DialectError;
  status: number | null;
}

interface SampleTimes {
  sentMs: number;
  firstTokenMs: number | null;
  finishedMs: number;
}

export interface SampleHooks {
  /** A delta has gone to the harness: the engine can not be asked again unseen. */
  readonly begun: boolean;
  /** The engine's 2xx is there. */
  onAnswer(): void;
  /** A chunk with its exact text; the next one is read when this resolves. */
  onChunk(raw: string, chunk: EngineChunk): Promise<void>;
}

/** Why a call was aborted from our side; the reason of its abort signal. */
export type AbortReason = Extract<Defect, "client_gone" | "aborted_by_seal">;

/** One call at the engine, as `call.ts` asks for it. */
export interface Ask {
  headers: Record<string, string>;
  signal: AbortSignal;
  hooks: SampleHooks;
  /** The engine's weight version before the call, and right now; null when it does not tell. `given`: the user's, where the engine's name is none. */
  versions: { before: string | null; now(): Promise<string | null>; given: string | null };
  /** The engine tells how many ids its replies have. */
  counts: boolean;
}

/** How often an answer that the engine aborts goes on. */
const RESUMES_MAX = 16;

export async function sample(upstream: Upstream, plan: PromptPlan, ask: Ask): Promise<Outcome> {
  const reading = new Reading(upstream, plan, ask);
  const refused = await reading.send(plan.call);
  if (refused !== null) return refused;
  for (let resumes = 0; resumes < RESUMES_MAX && reading.canResume; resumes += 1) {
    if (!(await reading.resume())) break;
  }
  return reading.outcome();
}

/** What came back so far, over one request or, where the engine aborted in the middle, several. */
class Reading {
  private readonly times: SampleTimes = { sentMs: Date.now(), firstTokenMs: null, finishedMs: 0 };
  private readonly collector: Collector;
  private failure: DialectError | null = null;
  private raw: string | null = null;
  /** How the connection ended before the reply did. */
  private cut: string | null = null;
  private read: ChunkReader = () => NO_CHUNK;

  constructor(
    private readonly upstream: Upstream,
    private readonly plan: PromptPlan,
    private readonly ask: Ask,
  ) {
    this.collector = new Collector(plan.promptIds, ask.counts, ask.versions.before);
  }

  /** Sends a body and reads its whole reply; a refusal is returned, everything else is collected. */
  async send({ path, body, reader }: SentCall): Promise<Refusal | null> {
    const { headers, signal, hooks } = this.ask;
    let answered = false;
    this.read = reader();
    try {
      const response = await this.upstream.send({ method: "POST", path, body, headers, signal });
      if (response.status < 200 || response.status > 299) return { kind: "refused", ...(await readFailure(response)) };
      answered = true;
      hooks.onAnswer();
      const isStream = (response.header("content-type") ?? "").toLowerCase().includes("text/event-stream");
      if (isStream) await readStream(response, this.collector, (text) => this.take(text));
      else {
        this.raw = await response.text();
        await this.take(this.raw);
      }
    } catch (error) {
      return this.broken(error, answered);
    }
    return null;
  }

  /** What it means that a request or its reply did not come to its end. @throws what is not the engine's doing. */
  private broken(error: unknown, answered: boolean): Refusal | null {
    const { signal } = this.ask;
    if (signal.aborted && (error === signal.reason || TitoError.is(error))) {
      this.collector.mark(signal.reason as AbortReason);
      return null;
    }
    if (!TitoError.is(error)) throw error;
    switch (error.code) {
      case "upstream_unavailable": {
        const unavailable: DialectError = { kind: "unavailable", message: error.message, retryable: true };
        // The engine is well, and the next connection is fresh.
        if (error.cause instanceof StaleConnection) unavailable.retryAfterS = 0;
        if (!answered) return { kind: "refused", error: unavailable, status: null };
        this.collector.mark("stream_cut");
        this.cut = error.message;
        return null;
      }
      // JSON, but of another shape.
      case "bad_request":
        this.collector.mark("unparsed_chunk");
        this.failure = { kind: "unavailable", message: "the engine sent something that is no reply", retryable: true };
        return null;
      // Compressed, or larger than any reply is: what came before is kept, and asking again would bring the same.
      case "upstream_invalid":
        this.collector.mark("unparsed_chunk");
        this.failure = { kind: "unavailable", message: error.message, retryable: false };
        return null;
      default:
        throw error;
    }
  }

  /** The engine gave up in the middle of an answer that the harness sees already, and the exact ids so far are known. */
  get canResume(): boolean {
    const { collector, ask, failure } = this;
    return (
      collector.finished === "abort" && collector.whole && ask.hooks.begun && failure === null && !ask.signal.aborted
    );
  }

  /** Goes on from prompt ‖ partial ids, as one turn. False: the answer stays aborted. */
  async resume(): Promise<boolean> {
    const { ask, collector, plan } = this;
    const call = plan.resume(collector.idsSoFar());
    if (call === null) return false;
    for (let attempt = 1; ; attempt += 1) {
      collector.resume(ask.versions.before, await ask.versions.now());
      const refused = await this.send(call);
      if (refused === null) return true;
      collector.giveUp();
      const delay = retryDelay(refused.error, attempt);
      if (delay === null) return false;
      await pause(delay);
      if (ask.signal.aborted) return false;
    }
  }

  outcome(): Outcome {
    this.times.finishedMs = Date.now();
    const sampled = this.collector.result();
    return {
      kind: "answered",
      sampled,
      failure: this.failure ?? incomplete(sampled, this.cut),
      raw: this.raw,
      times: this.times,
    };
  }

  private async take(text: string): Promise<boolean> {
    const { collector } = this;
    const chunk = readChunk(text, this.read);
    if (chunk === null) {
      collector.mark("unparsed_chunk");
      this.failure = { kind: "unavailable", message: "the engine sent something that is not JSON", retryable: true };
      return false;
    }
    if (chunk.sampled !== null && chunk.sampled.ids.length > 0) this.times.firstTokenMs ??= Date.now();
    collector.add(withNamedVersions(chunk, this.ask.versions.given));
    if (chunk.error !== null) {
      this.failure = classify(chunk.error.status, withCode(chunk.error)!, null);
      return false;
    }
    await this.ask.hooks.onChunk(text, chunk);
    return true;
  }
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
  let stopped = false;
  // An engine that misbehaved is not read to its end.
  await response.read(async (bytes) => {
    stopped = !(await all(parser.push(bytes)));
    return !stopped;
  });
  if (stopped) return;
  await all(parser.end());
  if (collector.finished === null) collector.mark("stream_cut");
}

function readChunk(text: string, read: ChunkReader): EngineChunk | null {
  try {
    return read(parseEngineJson(text));
  } catch {
    return null;
  }
}

function incomplete(sampled: Sampled, cut: string | null): DialectError | null {
  const { defects, finish } = sampled;
  if (defects.includes("aborted_by_seal"))
    return { kind: "sealed", message: "the trajectory was sealed during this call", retryable: false };
  if (defects.includes("client_gone")) return { kind: "unavailable", message: "the call was aborted", retryable: true };
  if (finish === "abort" || finish === "error") {
    return { kind: "unavailable", message: "the engine aborted this call", retryable: true };
  }
  if (finish === null) {
    const message = `the engine's answer ended before it was complete${cut === null ? "" : `: ${cut}`}`;
    return { kind: "unavailable", message, retryable: true };
  }
  return null;
}
