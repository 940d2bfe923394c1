import type { AnswerPiece } from "./stop-strings.js";
import { parseToolCall } from "./tool-call.js";

/** A part of the message that has become certain. A call comes whole: only then is it known to be one. */
export type MessageDelta =
  | { kind: "reasoning"; text: string }
  | { kind: "content"; text: string }
  | { kind: "tool_call"; index: number; id: string; name: string; arguments: string };

export interface HermesOptions {
  /** The prompt ended inside an open `<think>`. */
  startsInReasoning: boolean;
  /** False: the request offers no tools, so `<tool_call>` is text like any other. */
  readsToolCalls: boolean;
  /** Id of the call with this index. */
  callId: (index: number) => string;
}

/**
 * Reads an answer in the Hermes manner, piece by piece: `<think>` … `</think>` is reasoning, `<tool_call>` … `</tool_call>` a call, the rest content.
 * Only markers that were sampled as tokens count; the same letters sampled as text are text.
 * A block that is not a call comes out as content, word for word. Text before the first call is content as it stands; white space after a call is layout.
 */
export class HermesParser {
  readonly #options: HermesOptions;
  #state: "content" | "reasoning" | "call";
  /** White space after a call: content only if text follows. */
  #space = "";
  #call = "";
  #calls = 0;

  constructor(options: HermesOptions) {
    this.#options = options;
    this.#state = options.startsInReasoning ? "reasoning" : "content";
  }

  /** How many calls were read so far. */
  get calls(): number {
    return this.#calls;
  }

  push(piece: AnswerPiece): MessageDelta[] {
    switch (this.#state) {
      case "reasoning":
        if (piece.marker?.content !== "</think>") return delta("reasoning", piece.text);
        this.#state = "content";
        return [];
      case "content":
        return this.#pushContent(piece);
      case "call":
        if (piece.marker?.content !== "</tool_call>") {
          this.#call += piece.text;
          return [];
        }
        this.#state = "content";
        return this.#endCall(piece.text);
    }
  }

  /** The answer ended: what is still open is read as far as it goes. */
  end(): MessageDelta[] {
    if (this.#state === "call") {
      this.#state = "content";
      return this.#endCall("");
    }
    return [];
  }

  #pushContent(piece: AnswerPiece): MessageDelta[] {
    if (piece.marker?.content === "<think>") {
      this.#state = "reasoning";
      return [];
    }
    if (piece.marker?.content === "<tool_call>" && this.#options.readsToolCalls) {
      this.#state = "call";
      this.#call = "";
      return [];
    }
    if (this.#calls === 0) return delta("content", piece.text);
    const text = this.#space + piece.text;
    const solid = text.trimEnd();
    this.#space = text.slice(solid.length);
    return delta("content", solid);
  }

  #endCall(endText: string): MessageDelta[] {
    const call = parseToolCall(this.#call);
    if (call === null) {
      const raw = `${this.#space}<tool_call>${this.#call}${endText}`;
      this.#space = "";
      return delta("content", raw);
    }
    this.#space = "";
    const index = this.#calls++;
    return [{ kind: "tool_call", index, id: this.#options.callId(index), ...call }];
  }
}

function delta(kind: "reasoning" | "content", text: string): MessageDelta[] {
  return text === "" ? [] : [{ kind, text }];
}
