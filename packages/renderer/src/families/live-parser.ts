/**
 * Deltas of a turn while it is being sampled. What was given out is always a prefix of what the whole turn parses to:
 * white space that may still be cut, and calls, are held until the turn is whole.
 */
import type { Message } from "@tito/format";
import { pythonStripEnd } from "../template/python-strip.js";
import { type ByteTable, StreamingText } from "../tokenizer/byte-decoder.js";
import type { Family } from "./families.js";
import type { ParsedOutput } from "./output.js";
import type { Structure } from "./spans.js";

/** New text since the last delta; both empty when everything is held. */
export interface TextDelta {
  reasoning: string;
  content: string;
}

export interface WholeTurn {
  message: Message;
  malformed: boolean;
  /** What the deltas had not given out yet. */
  rest: TextDelta;
}

export interface LiveSources {
  family: Family;
  structure: Structure;
  bytes: ByteTable;
  stopIds: ReadonlySet<number>;
  reasoningOpen: boolean;
  /** Parses the ids so far, or the whole turn. */
  parse(ids: readonly number[]): { output: ParsedOutput; message: Message };
}

type Phase = "lead" | "reasoning" | "content" | "held";

export class LiveParser {
  readonly #sources: LiveSources;
  readonly #ids: number[] = [];
  readonly #given: TextDelta = { reasoning: "", content: "" };
  #text: StreamingText;
  #phase: Phase;
  /** Text of the phase that was not given out yet. */
  #pending = "";
  #begun = false;
  readonly #heldStops: number[] = [];

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.#text = new StreamingText(sources.bytes);
    this.#phase = sources.family.live === null ? "held" : sources.reasoningOpen ? "reasoning" : "lead";
  }

  push(ids: Iterable<number>): TextDelta {
    const delta: TextDelta = { reasoning: "", content: "" };
    for (const id of ids) {
      this.#ids.push(id);
      // A stop id ends the turn; only when something follows it after all is it part of the text.
      const ends = this.#sources.stopIds.has(id);
      if (!ends) for (const held of this.#heldStops.splice(0)) this.#takeId(held, delta);
      if (ends) this.#heldStops.push(id);
      else this.#takeId(id, delta);
    }
    return delta;
  }

  end(): WholeTurn {
    const { output, message } = this.#sources.parse(this.#ids);
    const left = (whole: string, given: string): string => (whole.startsWith(given) ? whole.slice(given.length) : "");
    const rest = {
      reasoning: left(output.reasoning ?? "", this.#given.reasoning),
      content: left(output.content, this.#given.content),
    };
    return { message, malformed: output.malformed, rest };
  }

  #takeId(id: number, delta: TextDelta): void {
    if (this.#phase === "held") return;
    const token = this.#sources.structure.tokenById.get(id);
    if (token === undefined) {
      this.#take(this.#text.push(id), delta);
      return;
    }
    this.#take(this.#text.end(), delta);
    this.#text = new StreamingText(this.#sources.bytes);
    this.#token(token, delta);
  }

  #token(token: string, delta: TextDelta): void {
    const { live } = this.#sources.family;
    if (token === live?.calls && this.#phase !== "reasoning") this.#phase = "held";
    else if (token === live?.think?.open && this.#phase === "lead") this.#enter("reasoning");
    else if (token === live?.think?.close && this.#phase === "reasoning") this.#enter("content");
    else this.#take(token, delta);
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#pending = "";
    this.#begun = false;
  }

  /** Takes decoded text; marks that the vocabulary lacks are found in it. */
  #take(text: string, delta: TextDelta): void {
    if (this.#phase === "held" || text === "") return;
    this.#pending += text;
    for (const mark of this.#sources.structure.inText) {
      const at = this.#pending.indexOf(mark);
      if (at < 0) continue;
      const after = this.#pending.slice(at + mark.length);
      this.#pending = this.#pending.slice(0, at);
      this.#give(delta, true);
      this.#token(mark, delta);
      this.#take(after, delta);
      return;
    }
    this.#give(delta, false);
  }

  #give(delta: TextDelta, whole: boolean): void {
    const certain = this.#pending.slice(
      0,
      whole ? undefined : certainLength(this.#pending, this.#sources.structure.inText),
    );
    // What a parser may cut is held back.
    const text = pythonStripEnd(certain.trimEnd());
    if (text === "") return;
    if (this.#phase === "lead") this.#phase = "content";
    const key = this.#phase === "reasoning" ? "reasoning" : "content";
    let piece = text;
    if (!this.#begun) {
      // How a beginning is trimmed is the parser's business: it is asked once, while there is little to parse.
      const { output } = this.#sources.parse(this.#ids);
      const value = (key === "reasoning" ? output.reasoning : output.content) ?? "";
      piece = value.startsWith(text) ? text : text.trimStart();
      if (!value.startsWith(piece)) return;
    }
    this.#begun = true;
    this.#pending = this.#pending.slice(text.length);
    this.#given[key] += piece;
    delta[key] += piece;
  }
}

/** How much of `text` cannot be the beginning of a mark. */
function certainLength(text: string, marks: readonly string[]): number {
  for (let at = Math.max(0, text.length - 64); at < text.length; at++) {
    if (marks.some((mark) => mark.startsWith(text.slice(at)))) return at;
  }
  return text.length;
}
