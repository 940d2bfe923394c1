/**
 * What the harness gets, frame by frame. Two writers of one interface: the engine's own chunks with the sidecar's fields taken
 * out (chat on chat), or a dialect's encoder fed with events. From the first held frame on everything waits for the record.
 */

import { TitoError } from "@tito/format";
import { CHAT_DONE, chatFrame } from "../dialect/chat-reply.js";
import { rightUsage } from "../dialect/chat-usage.js";
import type { DialectCodec, NeutralRequest, ReplyEvent, StreamEncoder, Usage } from "../dialect/neutral.js";
import { type Ends, editObject, findSlice, memberText, type Slice, sliceArray, sliceObject } from "../json/slices.js";
import { CallDeltas, type PlacedDelta } from "../sample/call-deltas.js";
import type { EngineChunk } from "../sample/engine-chunk.js";
import { finishOf } from "../sample/finish.js";
import { withinBounds } from "../sample/usage.js";
import { ChatAssembly } from "./chat-assembly.js";
import { placeCalls } from "./place-calls.js";

export interface Frame {
  text: string;
  held: boolean;
}

export interface ReplyWriter {
  /** Frames of one stream chunk. */
  chunk(raw: string, chunk: EngineChunk, events: readonly ReplyEvent[]): Frame[];
  /** Takes in a chunk of an answer that goes out as one body. */
  collect(raw: string, chunk: EngineChunk): void;
  /** What closes a whole stream. */
  end(events: readonly ReplyEvent[]): Frame[];
  /** The body of a reply that is not streamed; `raw` is the engine's own, null when it streamed. */
  body(raw: string | null, events: readonly ReplyEvent[]): string;
}

/** A dialect's own encoder: translated dialects, synthetic streams and replays. One encoder lives as long as the response. */
export function encodedWriter(codec: DialectCodec, request: NeutralRequest, encoder: StreamEncoder): ReplyWriter {
  const encode = (events: readonly ReplyEvent[]): Frame[] => events.flatMap((event) => encoder.encode(event));
  return {
    chunk: (_raw, _chunk, events) => encode(events),
    collect: () => undefined,
    end: encode,
    body: (_raw, events) => codec.reply(request, events),
  };
}

/** The harness's own requests for evidence, so that what it asked for itself is not taken out. */
export interface ChatWishes {
  logprobs: boolean;
  tokenIds: boolean;
  usage: boolean;
}

export function chatWishes(request: NeutralRequest): ChatWishes {
  return {
    logprobs: request.wantsLogprobs,
    tokenIds: request.chatBody !== undefined && memberText(request.chatBody, "return_token_ids") === "true",
    usage: request.includeUsage,
  };
}

/** Only an engine's own reply can show it: of an answer that the sidecar writes, or keeps for a retry, there is the message alone. */
export function wantsEvidence({ logprobs, tokenIds }: ChatWishes): boolean {
  return logprobs || tokenIds;
}

/** The engine's bytes, minus what only the sidecar asked for, with the usage that is true and an id for each call, made of `name` where there is none. */
export function passthroughWriter(wishes: ChatWishes, name: string): ReplyWriter {
  let holding = false;
  let sawCalls = false;
  // What the usage of the whole reply is told with, once that is known: the engine's own chunk for it, else its first chunk.
  let usageChunk: string | null = null;
  let first: string | null = null;
  const running = new RunningUsage();
  const deltas = new CallDeltas(name);
  const placed = (chunk: EngineChunk): PlacedDelta[] => chunk.tools.map((tool) => deltas.place(tool, ""));
  const assembly = new ChatAssembly(wishes);
  return {
    chunk: (raw, chunk) => {
      sawCalls ||= chunk.tools.length > 0;
      holding ||= chunk.finish !== null;
      running.add(chunk);
      const calls = placed(chunk);
      if (saysNothing(raw, chunk, wishes)) return [];
      first ??= raw;
      if (wishes.usage && chunk.usage !== null && hasNoChoice(raw)) {
        usageChunk = raw;
        return [];
      }
      const usage = wishes.usage ? running.at(chunk) : "none";
      return [
        {
          text: chatFrame(strip(raw, { finish: chunk.finish, hasCalls: sawCalls, calls, usage }, wishes)),
          held: holding,
        },
      ];
    },
    collect: (raw, chunk) => assembly.add(raw, chunk),
    end: (events) => {
      const frames = [{ text: CHAT_DONE, held: true }];
      const raw = usageChunk ?? (first === null ? null : editObject(first, new Map([["choices", "[]"]])));
      const usage = finishIn(events)?.usage;
      if (!wishes.usage || raw === null || usage === undefined) return frames;
      return [
        { text: chatFrame(strip(raw, { finish: null, hasCalls: false, calls: [], usage }, wishes)), held: true },
        ...frames,
      ];
    },
    body: (whole, events) => {
      const raw = whole ?? assembly.body(events);
      if (raw === null) throw new TitoError("upstream_invalid", "the engine's stream held no answer");
      const finish = finishIn(events);
      const hasCalls = events.some((event) => event.type === "tool_call");
      const told = {
        finish: finish?.reason === "length" ? "length" : "stop",
        hasCalls,
        // What was put together of a stream has its ids.
        calls: whole === null ? [] : callsIn(events),
        usage: finish?.usage ?? null,
      };
      return strip(raw, told, wishes);
    },
  };
}

/** Counts of a reply that is still going on: some engines tell them with each chunk, where they are asked to. */
class RunningUsage {
  private promptTokens: number | null = null;
  private completionTokens = 0;

  add(chunk: EngineChunk): void {
    this.promptTokens ??= chunk.promptIds?.length ?? null;
    this.completionTokens += chunk.sampled?.ids.length ?? 0;
  }

  /** Null where the chunk tells none, or the ids come later. */
  at(chunk: EngineChunk): Usage | null {
    const { promptTokens, completionTokens } = this;
    if (chunk.usage === null || promptTokens === null || (completionTokens === 0 && chunk.usage.completion !== 0))
      return null;
    const { cached, reasoning } = chunk.usage;
    return withinBounds({ promptTokens, completionTokens, cachedTokens: cached, reasoningTokens: reasoning });
  }
}

function finishIn(events: readonly ReplyEvent[]): (ReplyEvent & { type: "finish" }) | undefined {
  return events.find((event) => event.type === "finish");
}

function callsIn(events: readonly ReplyEvent[]): PlacedDelta[] {
  return events.flatMap((event) =>
    event.type === "tool_call" ? [{ index: event.index, id: event.id, begins: true }] : [],
  );
}

const hasNoChoice = (raw: string): boolean => /"choices"\s*:\s*\[\s*\]/.test(raw);

/** A chunk without a choice that brings usage or ids which the harness did not ask for: clients look for a first choice. */
function saysNothing(raw: string, chunk: EngineChunk, wishes: ChatWishes): boolean {
  if (chunk.finish !== null || chunk.content !== null || chunk.reasoning !== null || !hasNoChoice(raw)) return false;
  if (chunk.usage !== null) return !wishes.usage;
  return chunk.sampled !== null && !wishes.tokenIds;
}

/** What a chunk or body has to say: the engine's finish reason and, where it is known better than the engine says, the usage. */
interface Told {
  finish: string | null;
  hasCalls: boolean;
  /** The calls that it holds, in order, with the ids that the harness gets. */
  calls: readonly PlacedDelta[];
  usage: Usage | "none" | null;
}

function strip(raw: string, told: Told, wishes: ChatWishes): string {
  const { usage } = told;
  const edits = new Map<string, string | null>();
  if (!wishes.tokenIds) {
    edits.set("prompt_token_ids", null);
    edits.set("sglext", null);
  }
  const ends: Ends = new Map();
  const slices = sliceObject(raw, 0, ends);
  if (usage === "none") edits.set("usage", null);
  else if (usage !== null) edits.set("usage", rightUsage(memberText({ text: raw, slices }, "usage") ?? "null", usage));
  const choices = findSlice(slices, "choices");
  if (choices !== undefined && raw[choices.valueStart] === "[") {
    let out = "";
    let from = choices.valueStart;
    for (const place of sliceArray(raw, choices.valueStart, ends)) {
      const members = sliceObject(raw, place.start, ends);
      const choiceEdits = editsOfChoice(raw, members, told, wishes);
      out += raw.slice(from, place.start) + editObject(raw, choiceEdits, members, place);
      from = place.end;
    }
    edits.set("choices", out + raw.slice(from, choices.valueEnd));
  }
  return editObject(raw, edits, slices);
}

function editsOfChoice(
  raw: string,
  members: readonly Slice[],
  { finish, hasCalls, calls }: Told,
  wishes: ChatWishes,
): Map<string, string | null> {
  const edits = new Map<string, string | null>();
  const message = placeCalls(raw, members, calls);
  if (message !== null) edits.set(message.key, message.text);
  if (!wishes.tokenIds) {
    edits.set("token_ids", null);
    edits.set("prompt_token_ids", null);
    edits.set("meta_info", null);
  }
  if (!wishes.logprobs && findSlice(members, "logprobs") !== undefined) edits.set("logprobs", "null");
  if (finish !== null && hasCalls && memberText({ text: raw, slices: members }, "finish_reason") === '"stop"') {
    edits.set("finish_reason", JSON.stringify(finishOf(finish, true)));
  }
  return edits;
}
