/** What the event loop and the renderer's thread say to each other. */
import type { ErrorCode, Message, ToolDefinition } from "@tito/format";
import type { ModelFacts } from "../bundle/model-facts.js";
import type { TextDelta, WholeTurn } from "../families/live-parser.js";
import type { Certificate } from "../junction/certificate.js";
import type { IncrementalPrompt, IncrementalRequest } from "../junction/incremental-prompt.js";
import type { ParsedTurn, RenderOptions, TurnContext } from "../prompt-renderer.js";
import type { EncodedPrompt } from "../tokenizer/tokenizer.js";

/** Marks the thread as a renderer's for a program that is one file and starts itself as the thread. */
export const WORKER_ROLE = "tito-renderer";

export interface WorkerData {
  role: typeof WORKER_ROLE;
  bundle_directory: string;
}

/** Requests and their results, by name. */
export interface Operations {
  open: { args: []; result: { contract_id: string; stop_ids: number[]; family: string; model: ModelFacts } };
  render: { args: [Message[], ToolDefinition[], RenderOptions]; result: EncodedPrompt };
  count: { args: [Message[], ToolDefinition[], RenderOptions]; result: number };
  parse: { args: [Int32Array, TurnContext]; result: ParsedTurn };
  incremental: { args: [Certificate, IncrementalRequest]; result: IncrementalPrompt };
  decode: { args: [Int32Array]; result: string };
  live_open: { args: [number, TurnContext]; result: null };
  live_push: { args: [number, Int32Array]; result: TextDelta };
  live_end: { args: [number]; result: WholeTurn };
}
export type OperationName = keyof Operations;

export type Request = {
  [Name in OperationName]: { call: number; name: Name; args: Operations[Name]["args"] };
}[OperationName];

export type Response =
  | { call: number; ok: true; value: unknown }
  | { call: number; ok: false; error: { code: ErrorCode; message: string; hint: string | undefined } };
