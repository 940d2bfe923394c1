/** What writes a family's prompts when the vendor's authority is an encoder in code: the chat template of the bundle is not used then. */
import type { Message, ToolDefinition } from "@tito/format";
import type { ValueGuard } from "../tokenizer/value-guard.js";

interface WriterOptions {
  /** Today, YYYY-MM-DD, where the prompt shows it. */
  date: string;
  /** Ends the prompt where the assistant's turn begins. Encoders that open the turn behind every user message pay no heed. */
  generationPrompt: boolean;
  /** Template arguments of the bundle and of the request. */
  given: Readonly<Record<string, unknown>>;
}

/** @throws TitoError `bad_request` where the vendor's encoder refuses the conversation. */
export type PromptWriter = (
  messages: readonly Message[],
  tools: readonly ToolDefinition[],
  guard: ValueGuard,
  options: WriterOptions,
) => string[];

/** `chunks`: text like a template's output, tokenized as one. `segments`: each string is tokenized by itself, as the vendor's encoder does. */
export type Writer =
  | { kind: "template" }
  | { kind: "chunks"; write: PromptWriter }
  | { kind: "segments"; write: PromptWriter };
