/**
 * Cuts text into pre-tokenizer pieces with this runtime's regular expressions, as the BPE engine would.
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

/** Characters whose class may differ. The others are classified alike by every Unicode version since 6.1. */
const UNCERTAIN = /[^\0-\u02af\u4e00-\u9fa5\uac00-\ud7a3]/u;
const UNCERTAIN_ALL = new RegExp(UNCERTAIN, "gu");

export class PieceSplitter {
  readonly #engine: TiktokenClass;
  readonly #pattern: RegExp;
  readonly #classes: readonly string[];
  readonly #standInOf = new Map<string, string>();
  #runtimeClasses: readonly RegExp[] | undefined;
  #engineClasses: readonly ((char: string) => boolean)[] | undefined;

  constructor(engine: TiktokenClass, pattern: SplitPattern) {
    this.#engine = engine;
    this.#pattern = new RegExp(pattern.runtime, "gu");
    this.#classes = pattern.classes;
  }

  /** Calls `visit` with each piece of `text`, in order; together they are the whole text. */
  eachPiece(text: string, visit: (start: number, end: number) => void): void {
    const shadow = UNCERTAIN.test(text) ? text.replace(UNCERTAIN_ALL, (char) => this.#standIn(char)) : text;
    let start = 0;
    this.#pattern.lastIndex = 0;
    while (this.#pattern.test(shadow)) {
      visit(start, this.#pattern.lastIndex);
      start = this.#pattern.lastIndex;
    }
  }

  #standIn(char: string): string {
    const known = this.#standInOf.get(char);
    if (known !== undefined) return known;
    this.#runtimeClasses ??= this.#classes.map((name) => new RegExp(`^\\p{${name}}$`, "u"));
    this.#engineClasses ??= this.#classes.map((name) => engineClass(this.#engine, name));
    const runtimeClasses = this.#runtimeClasses;
    const wanted = this.#engineClasses.map((has) => has(char));
    const agrees = (candidate: string): boolean =>
      candidate.length === char.length && runtimeClasses.every((regex, i) => regex.test(candidate) === wanted[i]);
    const standIn = agrees(char) ? char : (STAND_INS.find(agrees) ?? char);
    this.#standInOf.set(char, standIn);
    return standIn;
  }
}

/** The engine drops what its pattern does not match: a character gives ids exactly when it is of the class. */
function engineClass(engine: TiktokenClass, name: string): (char: string) => boolean {
  const bytes = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte).toString("base64")).join(" ");
  const probe = new engine(`! 0 ${bytes}`, {}, `\\p{${name}}`);
  return (char) => probe.encode_ordinary(char).length > 0;
}
