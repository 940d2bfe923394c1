import { TitoError } from "@tito/format";
import type { Vocabulary } from "../model/vocabulary.js";
import { readConversation } from "./conversation.js";
import { Shield } from "./shield.js";
import type { ChatTemplate } from "./template.js";

/** A prompt as the policy gets it. `toolNames` is null when the prompt came as text or ids. */
export interface EncodedPrompt {
  ids: number[];
  toolNames: string[] | null;
}

export interface ChatRendering {
  /** The request's bytes as text: `messages`, `tools` and `chat_template_kwargs` are read from it, number by number as they are spelled. */
  rawBody: string;
  addGenerationPrompt: boolean;
  /** Of `chat_template_kwargs` and fields that vLLM hands to the template, such as `reasoning_effort`. */
  variables: ReadonlyMap<string, unknown>;
  names: { bosToken: string; eosToken: string };
}

/** Messages and tools → prompt ids. Special tokens come from the template's own text only. */
export function renderChat(vocabulary: Vocabulary, template: ChatTemplate, chat: ChatRendering): EncodedPrompt {
  const shield = new Shield(chat.rawBody + template.source, vocabulary.specialTexts());
  const { messages, tools } = readConversation(shield.parse(chat.rawBody), shield);
  const variables = new Map<string, unknown>([
    ["bos_token", chat.names.bosToken],
    ["eos_token", chat.names.eosToken],
    ...[...chat.variables].map(([name, value]): [string, unknown] => [name, shield.protect(value)]),
    ["messages", messages],
    ["tools", tools],
    ["documents", null],
    ["add_generation_prompt", chat.addGenerationPrompt],
  ]);
  const text = template.render(variables);
  const ids = vocabulary
    .split(text)
    .flatMap((piece) => ("marker" in piece ? [piece.marker.id] : vocabulary.encodePlain(shield.restore(piece.text))));
  return { ids, toolNames: tools === null ? [] : tools.map(nameOfTool) };
}

/** Prompt ids that the caller chose. Throws `bad_request` for an id the model does not have. */
export function promptOfIds(vocabulary: Vocabulary, ids: readonly number[]): EncodedPrompt {
  if (ids.length === 0) throw new TitoError("bad_request", "The decoder prompt cannot be empty");
  const outside = ids.find((id) => id >= vocabulary.size);
  if (outside !== undefined) throw new TitoError("bad_request", `Token id ${outside} is out of vocabulary`);
  return { ids: [...ids], toolNames: null };
}

/** A text prompt: added tokens in it are meant as tokens, as in vLLM. */
export function promptOfText(vocabulary: Vocabulary, text: string): EncodedPrompt {
  return promptOfIds(vocabulary, vocabulary.encode(text));
}

function nameOfTool(tool: unknown): string {
  return (tool as { function: { name: string } }).function.name;
}
