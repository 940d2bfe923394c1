/**
 * Cuts a long region into pre-tokenizer pieces with this runtime's regular expressions, as the BPE engine would.
 * The two know different Unicode versions; a character that they classify differently is stood in for by one of the engine's class.
 */
import type { TiktokenClass } from "./bpe-engine.js";
import type { SplitPattern } from "./split-pattern.js";

/** One character of each class in one and in two UTF-16 units, stable in every Unicode version since 6.1. */
const STAND_INS = [
  ..."\uE000éÉǅʰª\u0301²§©",
  "\u{F0000}",
  "\u{10428}",
  "\u{10400}",
  "\u{10300}",
  "\u{1D165}",
  "\u{10107}",
  "\u{10100}",
  "\u{1F000}",
  "\u3400",
  "\u{20000}",
];

export class PieceSplitter {
  readonly #pattern: SplitPattern;
  readonly #runtimeClasses: readonly RegExp[];
  readonly #engineClasses: readonly ((char: string) => boolean)[];
  readonly #standInOf = new Map<string, string>();

  constructor(engine: TiktokenClass, pattern: SplitPattern) {
    this.#pattern = pattern;
    this.#runtimeClasses = pattern.classes.map((name) => new RegExp(`^\\p{${name}}$`, "u"));
    const bytes = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte).toString("base64")).join(" ");
    this.#engineClasses = pattern.classes.map((name) => {
      // The engine drops what its pattern does not match: a character gives ids exactly when it is of the class.
      const probe = new engine(`! 0 ${bytes}`, {}, `\\p{${name}}`);
      return (char) => probe.encode_ordinary(char).length > 0;
    });
  }

  /** The pieces of `text`, in order; joined they are `text`. */
  split(text: string): string[] {
    const shadow = text.replace(/[^\0-\u02af\u4e00-\u9fa5\uac00-\ud7a3]/gu, (char) => this.#standIn(char));
    const pieces: string[] = [];
    for (const match of shadow.matchAll(this.#pattern.runtime)) {
      pieces.push(text.slice(match.index, match.index + match[0].length));
    }
    return pieces;
  }

  #standIn(char: string): string {
    const known = this.#standInOf.get(char);
    if (known !== undefined) return known;
    const wanted = this.#engineClasses.map((has) => has(char));
    const agrees = (candidate: string): boolean =>
      candidate.length === char.length && this.#runtimeClasses.every((regex, i) => regex.test(candidate) === wanted[i]);
    const standIn = agrees(char) ? char : (STAND_INS.find(agrees) ?? char);
    this.#standInOf.set(char, standIn);
    return standIn;
  }
}
