import { hashOf } from "../policy/hash.js";

const PROMPTS_MAX = 100_000;
const SEQUENCES_MAX = 128;

/** What the engine remembers of earlier requests: how often it saw a prompt, and which prefixes a cache would hold. */
export class PromptHistory {
  readonly #seen = new Map<string, number>();
  readonly #sequences: (readonly number[])[] = [];
  readonly #keepsSequences: boolean;

  /** Sequences are kept only where somebody asks for cached tokens. */
  constructor(options: { keepsSequences: boolean }) {
    this.#keepsSequences = options.keepsSequences;
  }

  /** Counts the prompt; 1 the first time. Of the prompts beyond 100,000 the oldest are forgotten. */
  occurrence(ids: readonly number[]): number {
    const key = hashOf(ids);
    const count = (this.#seen.get(key) ?? 0) + 1;
    this.#seen.delete(key);
    this.#seen.set(key, count);
    if (this.#seen.size > PROMPTS_MAX) {
      for (const oldest of this.#seen.keys()) {
        this.#seen.delete(oldest);
        break;
      }
    }
    return count;
  }

  /** How many ids of the prompt a prefix cache would not compute again. The last id is always computed. */
  cachedTokens(ids: readonly number[]): number {
    const longest = Math.max(0, ...this.#sequences.map((sequence) => commonPrefix(sequence, ids)));
    return Math.min(longest, ids.length - 1);
  }

  /** What was computed with other weights is no longer in the cache. */
  forgetSequences(): void {
    this.#sequences.length = 0;
  }

  /** Remembers a sequence that was computed. */
  remember(ids: readonly number[]): void {
    if (!this.#keepsSequences) return;
    this.#sequences.push(ids);
    if (this.#sequences.length > SEQUENCES_MAX) this.#sequences.shift();
  }
}

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a[at] === b[at]) at++;
  return at;
}
