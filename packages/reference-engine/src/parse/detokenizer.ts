import type { Vocabulary } from "../model/vocabulary.js";
import type { AnswerPiece } from "./stop-strings.js";

/** Sampled ids → pieces of text, one id at a time. A character whose bytes are spread over tokens appears with the last of them. */
export class Detokenizer {
  readonly #vocabulary: Vocabulary;
  readonly #skipSpecial: boolean;
  readonly #utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(vocabulary: Vocabulary, skipSpecial: boolean) {
    this.#vocabulary = vocabulary;
    this.#skipSpecial = skipSpecial;
  }

  push(id: number): AnswerPiece[] {
    const marker = this.#vocabulary.marker(id);
    if (marker === undefined) return textPiece(this.#utf8.decode(this.#vocabulary.bytes(id), { stream: true }));
    const text = marker.special && this.#skipSpecial ? "" : marker.content;
    return [...this.flush(), { marker, text }];
  }

  /** Ends an unfinished character with U+FFFD. */
  flush(): AnswerPiece[] {
    return textPiece(this.#utf8.decode());
  }
}

function textPiece(text: string): AnswerPiece[] {
  return text === "" ? [] : [{ marker: null, text }];
}
