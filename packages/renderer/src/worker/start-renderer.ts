/** Starts the renderer's thread and speaks to it. The event loop never tokenizes. */
import { Worker } from "node:worker_threads";
import type { Message, ToolDefinition } from "@tito/format";
import type { ModelFacts } from "../bundle/model-facts.js";
import type { TextDelta, WholeTurn } from "../families/live-parser.js";
import type { Certificate } from "../junction/certificate.js";
import type { IncrementalPrompt, IncrementalRequest } from "../junction/incremental-prompt.js";
import type { ParsedTurn, RenderOptions, TurnContext } from "../prompt-renderer.js";
import type { EncodedPrompt } from "../tokenizer/tokenizer.js";
import { Connection } from "./connection.js";
import { WORKER_ROLE, type WorkerData } from "./protocol.js";
import type { StartOptions } from "./start-options.js";
import { SupervisedThread } from "./supervised-thread.js";
import { workerCode } from "./worker-code.js";

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
  readonly model: ModelFacts;
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

function startWorker(bundleDirectory: string, options: StartOptions): Worker {
  const workerData: WorkerData = { role: WORKER_ROLE, bundle_directory: bundleDirectory };
  const code = options.worker ?? workerCode();
  if (code instanceof URL) return new Worker(code, { workerData, name: "renderer" });
  return new Worker(code.source, { eval: true, workerData });
}

/** Loads the bundle in a thread of its own and returns when it is ready. @throws TitoError `bundle_invalid`. */
export async function startRenderer(bundleDirectory: string, options: StartOptions = {}): Promise<Renderer> {
  const thread = await SupervisedThread.start(() => new Connection(startWorker(bundleDirectory, options)), options);
  const { opened } = thread;
  let streams = 0;
  return {
    contractId: opened.contract_id,
    stopIds: opened.stop_ids,
    family: opened.family,
    model: opened.model,
    render: (messages, tools, render = {}) => thread.ask("render", [...messages], [...tools], render),
    countTokens: (messages, tools, render = {}) => thread.ask("count", [...messages], [...tools], render),
    parse: (sampledIds, context) => thread.ask("parse", sampledIds, context),
    buildIncrementalPrompt: (certificate, request) => thread.ask("incremental", certificate, request),
    decode: (ids) => thread.ask("decode", ids),
    streamParser: (context) => new ThreadStream(thread, ++streams, context),
    close: () => thread.close(),
  };
}

/** A turn's parser lives in the thread. In the next one it is opened anew and reads again what it had read; its deltas are the same. */
class ThreadStream implements TurnStream {
  readonly #read: Int32Array[] = [];
  #openIn: Connection | null = null;

  constructor(
    private readonly thread: SupervisedThread,
    private readonly id: number,
    private readonly context: TurnContext,
  ) {}

  async push(ids: Int32Array): Promise<TextDelta> {
    const delta = await this.thread.run(async (connection) => {
      await this.#open(connection);
      return connection.ask("live_push", this.id, ids);
    });
    this.#read.push(ids);
    return delta;
  }

  end(): Promise<WholeTurn> {
    return this.thread.run(async (connection) => {
      await this.#open(connection);
      return connection.ask("live_end", this.id);
    });
  }

  async #open(connection: Connection): Promise<void> {
    if (this.#openIn === connection) return;
    await connection.ask("live_open", this.id, this.context);
    for (const ids of this.#read) await connection.ask("live_push", this.id, ids);
    this.#openIn = connection;
  }
}
