/** A template and a tokenizer with the freedoms that real ones take, and harness edits that are known by name: the oracle of the drift tests. */
import type { Message, ToolCall } from "@tito/format";
import {
  commit,
  createState,
  type Decision,
  type DriftCause,
  decide,
  type EngineTurn,
  flatText,
  setDelivery,
  textsWanted,
} from "../src/index.js";
import { Vocabulary } from "./toy-model.js";

/** What the template does to old messages. */
export interface Printing {
  /** Reasoning before the last user message is left out; `emptied`: its marks stay. */
  reasoning?: "stripped" | "emptied";
  /** Content loses the white space at its ends. */
  trims?: boolean;
  /** Arguments are read and written as Python writes JSON. */
  respells?: boolean;
  /** The end of an old turn is another token than is sampled. */
  ends?: "end_of_message";
  /** Ids of calls are printed. */
  ids?: boolean;
  /** The header of a reply opens its reasoning block, so that the policy samples no mark for it. */
  opens?: boolean;
  /** The header of an old assistant message is another one. */
  header?: string;
}

/** `letters`: punctuation is one token each; `runs`: words and punctuation take the space before them and punctuation runs together, as in byte pair encodings. */
export type Tokenizing = "letters" | "runs";
const PIECES: Record<Tokenizing, RegExp> = { letters: /\s+|\w+|[^\w\s]/g, runs: / ?\w+| ?[^\w\s]+|\s+/g };

/** How the policy samples a reply: printed as it likes, in tokens of its choice. */
export interface Sampling {
  /** Words that are sampled in these pieces. */
  split?: ReadonlyMap<string, readonly string[]>;
  /** Text of each call's arguments as sampled; the message holds what the engine made of it. */
  args?: string;
}

const MARK = /(<[a-z_]+>|<\/[a-z_]+>)/;

export class DriftModel {
  private readonly state = createState();
  private readonly vocabulary = new Vocabulary();
  private count = 0;

  constructor(
    private readonly tokenizing: Tokenizing,
    private readonly withTexts: boolean,
  ) {}

  /** One call: the request as the harness wrote it, printed by the template, and the reply as it was sampled. */
  ask(messages: readonly Message[], reply: Message, printing: Printing = {}, sampling: Sampling = {}): Decision {
    this.count += 1;
    const turn: EngineTurn = {
      call_id: `t${this.count}`,
      prompt_ids: this.vocabulary.encode(this.tokens(promptText(messages, printing))),
      sampled_ids: this.vocabulary.encode(this.sampledTokens(reply, printing, sampling)),
      checkpointable: true,
      lane: "main",
      messages,
      reply,
      tools_sha256: "00",
      renderer_contract: "c1",
      retry_of: null,
      harness: null,
      arrived_after: null,
    };
    let decision = decide(this.state, turn);
    const wanted = this.withTexts ? textsWanted(this.state, turn, decision) : null;
    if (wanted !== null)
      decision = decide(this.state, turn, {
        texts: { earlier: this.text(wanted.earlier), now: this.text(wanted.now) },
      });
    commit(this.state, turn, decision, this.count);
    setDelivery(this.state, turn.call_id, "delivered");
    return decision;
  }

  private text(ids: Int32Array): string {
    return Array.from(ids, (id) => JSON.parse(this.vocabulary.decode(id)) as string).join("");
  }

  private tokens(text: string): string[] {
    return text.split(MARK).flatMap((part) => (MARK.test(part) ? [part] : (part.match(PIECES[this.tokenizing]) ?? [])));
  }

  private sampledTokens(reply: Message, printing: Printing, { split, args }: Sampling): string[] {
    const calls = reply.tool_calls?.map((call) => ({ ...call, arguments: args ?? call.arguments }));
    const asSampled = calls === undefined ? reply : { ...reply, tool_calls: calls };
    const printed = `${bodyText(asSampled, { ids: printing.ids ?? false })}<end>`;
    const text = printing.opens ? printed.replace(/^<think>/, "") : printed;
    return this.tokens(text).flatMap(
      (token) => split?.get(token.trim())?.map((piece, i) => (i === 0 ? leadOf(token) : "") + piece) ?? [token],
    );
  }
}

const leadOf = (token: string): string => (token.startsWith(" ") ? " " : "");

function promptText(messages: readonly Message[], printing: Printing): string {
  const lastUser = messages.findLastIndex((message) => message.role === "user");
  const printed = messages.map((message, i) => {
    const old = message.role === "assistant";
    const header = old ? (printing.header ?? "assistant") : message.role;
    const { reasoning, ...rest } = printing;
    const how = i < lastUser && reasoning !== undefined ? { ...rest, reasoning } : rest;
    return `<${header}>${bodyText(message, old ? how : { ids: printing.ids ?? false })}${old && printing.ends ? `<${printing.ends}>` : "<end>"}`;
  });
  return `<begin>${printed.join("")}<assistant>${printing.opens ? "<think>" : ""}`;
}

function bodyText(message: Message, how: Printing): string {
  const id = how.ids && message.tool_call_id !== undefined ? `<for>${message.tool_call_id}</for>` : "";
  const content = flatText(message.content);
  const calls = (message.tool_calls ?? []).map((call) => callText(call, how)).join("");
  return `${id}${reasoningText(message, how)}${how.trims ? content.trim() : content}${calls}`;
}

function reasoningText({ reasoning }: Message, how: Printing): string {
  if (reasoning === undefined || how.reasoning === "stripped") return "";
  return how.reasoning === "emptied" ? "<think></think>" : `<think>${reasoning}</think>`;
}

function callText(call: ToolCall, how: Printing): string {
  const args = how.respells ? pythonSpelled(JSON.parse(call.arguments)) : call.arguments;
  return `<call>${how.ids ? `<id>${call.id}</id>` : ""}${call.name}<args>${args}</call>`;
}

export function pythonSpelled(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonSpelled).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}: ${pythonSpelled(member)}`)
    .join(", ")}}`;
}

/** What a conversation must hold for an edit to be possible: of the edited reply, of what follows it (`answered`: another reply). */
export type Need = "calls" | "parallel" | "content" | "answered" | "last" | "user_follows";

/** Something that happens to the history, and the cause that it must be given. */
export interface Edit {
  cause: DriftCause;
  /** The messages as they come back; `at` is the place of the reply that is edited, always an assistant message. */
  messages?: (messages: Message[], at: number) => Message[];
  /** The template of the request that drifts; the earlier ones were printed without. */
  printing?: Printing;
  /** How the edited reply was sampled. */
  sampling?: Sampling;
  /** Printing of every request. */
  always?: Printing;
  needs?: readonly Need[];
  /** Arguments are sampled as a template spells them. */
  python?: boolean;
  /** Only the texts of tokens can tell. */
  texts_only?: boolean;
}

const change =
  (how: (message: Message) => Message) =>
  (messages: Message[], at: number): Message[] =>
    messages.map((message, i) => (i === at ? how(message) : message));
const changeCalls = (how: (call: ToolCall, index: number) => ToolCall) =>
  change((message) => ({ ...message, tool_calls: message.tool_calls!.map(how) }));
const without = (message: Message, key: "reasoning" | "tool_calls"): Message => {
  const { [key]: _gone, ...rest } = message;
  return rest;
};
/** The index of the first result of the reply's calls. */
const changeResult = (how: (message: Message) => Message) => (messages: Message[], at: number) =>
  change(how)(messages, at + 1);
const renamedIds = (messages: Message[]): Message[] =>
  messages.map((message) => ({
    ...message,
    ...(message.tool_call_id === undefined ? {} : { tool_call_id: `call-${message.tool_call_id}-x` }),
    ...(message.tool_calls === undefined
      ? {}
      : { tool_calls: message.tool_calls.map((call) => ({ ...call, id: `call-${call.id}-x` })) }),
  }));
const droppedCalls =
  (keep: number) =>
  (messages: Message[], at: number): Message[] => {
    const calls = messages[at]!.tool_calls!;
    const gone = new Set(calls.slice(keep).map((call) => call.id));
    return messages
      .map((message, i) => {
        if (i !== at) return message;
        return keep === 0 ? without(message, "tool_calls") : { ...message, tool_calls: calls.slice(0, keep) };
      })
      .filter((message) => !gone.has(message.tool_call_id ?? ""));
  };
const pieces = (...words: string[]): ReadonlyMap<string, readonly string[]> =>
  new Map(words.map((word) => [word, [word.slice(0, 2), word.slice(2)]]));
const letters = (...words: string[]): ReadonlyMap<string, readonly string[]> =>
  new Map(words.map((word) => [word, [...word]]));

export const EDITS: Record<string, Edit> = {
  "arguments spelled by the harness": {
    cause: "tool_arguments_reserialised",
    messages: changeCalls((call) => ({ ...call, arguments: pythonSpelled(JSON.parse(call.arguments)) })),
    needs: ["calls"],
  },
  "arguments spelled by the template": {
    cause: "tool_arguments_reserialised",
    printing: { respells: true },
    needs: ["calls"],
  },
  "arguments spelled by the engine's parser": {
    cause: "tool_arguments_reserialised",
    sampling: { args: '{"command":"listing","limit":2}' },
    needs: ["calls"],
    python: true,
    texts_only: true,
  },
  "arguments with another value": {
    cause: "tool_call_rewritten",
    messages: changeCalls((call) => ({ ...call, arguments: call.arguments.replace("listing", "other") })),
    needs: ["calls"],
  },
  "another tool": {
    cause: "tool_renamed",
    messages: changeCalls((call) => ({ ...call, name: "execute" })),
    needs: ["calls"],
  },
  "renamed call ids": {
    cause: "tool_call_id_renamed",
    messages: renamedIds,
    always: { ids: true },
    needs: ["calls"],
  },
  "all calls dropped": { cause: "tool_call_dropped", messages: droppedCalls(0), needs: ["calls"] },
  "one call of two dropped": { cause: "tool_call_dropped", messages: droppedCalls(1), needs: ["parallel"] },
  "reasoning dropped": { cause: "reasoning_dropped", messages: change((message) => without(message, "reasoning")) },
  "reasoning trimmed": {
    cause: "reasoning_trimmed",
    messages: change((message) => ({ ...message, reasoning: message.reasoning!.trim() })),
  },
  "reasoning rewritten": {
    cause: "reasoning_changed",
    messages: change((message) => ({ ...message, reasoning: "summary of thoughts" })),
  },
  "content trimmed": {
    cause: "content_trimmed",
    needs: ["content"],
    messages: change((message) => ({ ...message, content: flatText(message.content).trim() })),
  },
  "content rewritten": {
    cause: "content_changed",
    needs: ["content"],
    messages: change((message) => ({ ...message, content: "something else was written " })),
  },
  "a result pruned": {
    cause: "tool_results_pruned",
    messages: changeResult((message) => ({ ...message, content: "[cut]" })),
    needs: ["calls", "answered"],
  },
  "a result rewritten": {
    cause: "content_changed",
    messages: changeResult((message) => ({ ...message, content: `${flatText(message.content)} and some more` })),
    needs: ["calls", "answered"],
  },
  "an attempt that was never sampled": {
    cause: "ghost_turn",
    messages: (messages, at) => [
      ...messages.slice(0, at),
      { role: "assistant", content: "I will lo" },
      ...messages.slice(at),
    ],
  },
  "a user message put in": {
    cause: "history_edited",
    messages: (messages, at) => [
      ...messages.slice(0, at),
      { role: "user", content: "a reminder" },
      ...messages.slice(at),
    ],
  },
  "two replies merged": {
    cause: "merged_turn",
    messages: change((message) => ({
      ...message,
      tool_calls: [...message.tool_calls!, { id: "dead", name: "bash", arguments: "{}" }],
    })),
    needs: ["calls"],
  },
  "another system text": {
    cause: "system_changed",
    messages: (messages) => [{ role: "system", content: "be elaborate" }, ...messages.slice(1)],
  },
  "no system text": { cause: "system_changed", messages: (messages) => messages.slice(1) },
  "developer for system": {
    cause: "content_reshaped",
    messages: (messages) => [{ ...messages[0]!, role: "developer" }, ...messages.slice(1)],
  },
  "old reasoning not printed": {
    cause: "template_rewrite",
    printing: { reasoning: "stripped" },
    needs: ["user_follows"],
  },
  "old reasoning printed as an empty block": {
    cause: "template_rewrite",
    printing: { reasoning: "emptied" },
    needs: ["user_follows"],
  },
  "content trimmed by the template": { cause: "template_rewrite", printing: { trims: true }, needs: ["content"] },
  "another end of old turns": { cause: "template_rewrite", printing: { ends: "end_of_message" } },
  "another header of old turns": { cause: "template_rewrite", printing: { header: "model" } },
  "reasoning sampled in other tokens": { cause: "retokenised", sampling: { split: pieces("wondering") } },
  "content sampled in other tokens": {
    cause: "retokenised",
    sampling: { split: pieces("Looking") },
    needs: ["content"],
  },
  "content sampled letter by letter": {
    cause: "retokenised",
    sampling: { split: letters("Looking", "around") },
    needs: ["content"],
  },
  "arguments sampled in other tokens": {
    cause: "retokenised",
    sampling: { split: pieces("listing") },
    needs: ["calls"],
  },
  "content sampled in other tokens, and calls renamed that nobody prints": {
    cause: "retokenised",
    messages: renamedIds,
    sampling: { split: pieces("Looking") },
    needs: ["content", "last"],
  },
  "content sampled in other tokens, and arguments spelled that the template spells anyway": {
    cause: "retokenised",
    messages: (messages) =>
      messages.map((message) =>
        message.tool_calls === undefined
          ? message
          : {
              ...message,
              tool_calls: message.tool_calls.map((call) => ({
                ...call,
                arguments: JSON.stringify(JSON.parse(call.arguments)),
              })),
            },
      ),
    always: { respells: true },
    sampling: { split: pieces("Looking") },
    needs: ["content", "last"],
    python: true,
    texts_only: true,
  },
  "everything sampled letter by letter": {
    cause: "retokenised",
    sampling: { split: letters("wondering", "about", "Looking", "around", "listing") },
  },
};
