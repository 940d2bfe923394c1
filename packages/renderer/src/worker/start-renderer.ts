/** Starts the renderer's thread and speaks to it. The event loop never tokenizes. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type Message, TitoError, type ToolDefinition } from "@tito/format";
import type { TextDelta, WholeTurn } from "../families/live-parser.js";
import type { Certificate } from "../junction/certificate.js";
import type { IncrementalPrompt, IncrementalRequest } from "../junction/incremental-prompt.js";
import type { ParsedTurn, RenderOptions, TurnContext } from "../prompt-renderer.js";
import type { EncodedPrompt } from "../tokenizer/tokenizer.js";
import { type OperationName, type Operations, type Response, WORKER_ROLE, type WorkerData } from "./protocol.js";

/** A turn that is parsed while it is being sampled. */
export interface TurnStream {
  /** Text that the new ids add for certain. */
  push(ids: Int32Array): Promise<TextDelta>;
  /** The whole turn, and what the deltas had not given out. */
  end(): Promise<WholeTurn>;
}

/** A renderer bundle at work in its thread. Calls are answered in the order they are made. */
export interface Renderer {
  /** Digest of the bundle. */
  readonly contractId: string;
  /** Ids that end a turn. */
  readonly stopIds: readonly number[];
  readonly family: string;
  render(
    messages: readonly Message[],
    tools: readonly ToolDefinition[],
    options?: RenderOptions,
  ): Promise<EncodedPrompt>;
  countTokens(messages: readonly Message[], tools: readonly ToolDefinition[], options?: RenderOptions): Promise<number>;
  parse(sampledIds: Int32Array, context: TurnContext): Promise<ParsedTurn>;
  streamParser(context: TurnContext): TurnStream;
  /** The next prompt in incremental mode, or the reason for full history. */
  buildIncrementalPrompt(certificate: Certificate, request: IncrementalRequest): Promise<IncrementalPrompt>;
  decode(ids: Int32Array): Promise<string>;
  close(): Promise<void>;
}

export interface StartOptions {
  /** Where the thread's code is; default is the file beside this one, else the program's own file. Text is run as a script. */
  worker?: URL | { source: string };
}

function workerFile(): URL {
  const beside = new URL("./worker-entry.js", import.meta.url);
  if (existsSync(fileURLToPath(beside))) return beside;
  // From sources, the built thread; in a program of one file, that file, which starts the thread through runRendererThread.
  const built = new URL("../../dist/worker/worker-entry.js", import.meta.url);
  return import.meta.url.endsWith(".ts") && existsSync(fileURLToPath(built)) ? built : new URL(import.meta.url);
}

function startWorker(bundleDirectory: string, options: StartOptions): Worker {
  const workerData: WorkerData = { role: WORKER_ROLE, bundle_directory: bundleDirectory };
  const { worker } = options;
  if (worker !== undefined && !(worker instanceof URL)) return new Worker(worker.source, { eval: true, workerData });
  return new Worker(worker ?? workerFile(), { workerData, name: "renderer" });
}

class Connection {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: TitoError) => void }>();
  #calls = 0;
  #dead: TitoError | undefined;

  constructor(worker: Worker) {
    this.#worker = worker;
    worker.on("message", (response: Response) => {
      const waiting = this.#waiting.get(response.call);
      this.#waiting.delete(response.call);
      if (response.ok) waiting?.resolve(response.value as never);
      else waiting?.reject(new TitoError(response.error.code, response.error.message, hintOf(response.error.hint)));
    });
    worker.on("error", (cause) =>
      this.#die(new TitoError("internal", `the renderer's thread failed: ${cause.message}`, { cause })),
    );
    worker.on("exit", () => this.#die(new TitoError("internal", "the renderer's thread has ended")));
    worker.unref();
  }

  ask<Name extends OperationName>(name: Name, ...args: Operations[Name]["args"]): Promise<Operations[Name]["result"]> {
    if (this.#dead !== undefined) return Promise.reject(this.#dead);
    const call = ++this.#calls;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage({ call, name, args });
    }).finally(() => {
      if (this.#waiting.size === 0) this.#worker.unref();
    }) as Promise<Operations[Name]["result"]>;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #die(error: TitoError): void {
    this.#dead ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#dead);
    this.#waiting.clear();
  }
}

const hintOf = (hint: string | undefined): { hint?: string } => (hint === undefined ? {} : { hint });

/** Loads the bundle in a thread of its own and returns when it is ready. @throws TitoError `bundle_invalid`. */
export async function startRenderer(bundleDirectory: string, options: StartOptions = {}): Promise<Renderer> {
  const connection = new Connection(startWorker(bundleDirectory, options));
  const opened = await connection.ask("open").catch(async (error) => {
    await connection.close();
    throw error;
  });
  let streams = 0;
  return {
    contractId: opened.contract_id,
    stopIds: opened.stop_ids,
    family: opened.family,
    render: (messages, tools, render = {}) => connection.ask("render", [...messages], [...tools], render),
    countTokens: (messages, tools, render = {}) => connection.ask("count", [...messages], [...tools], render),
    parse: (sampledIds, context) => connection.ask("parse", sampledIds, context),
    buildIncrementalPrompt: (certificate, request) => connection.ask("incremental", certificate, request),
    decode: (ids) => connection.ask("decode", ids),
    streamParser: (context) => {
      const stream = ++streams;
      const opening = connection.ask("live_open", stream, context);
      return {
        push: async (ids) => {
          await opening;
          return connection.ask("live_push", stream, ids);
        },
        end: async () => {
          await opening;
          return connection.ask("live_end", stream);
        },
      };
    },
    close: () => connection.close(),
  };
}
