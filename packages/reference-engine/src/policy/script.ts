import type { Vocabulary } from "../model/vocabulary.js";
import type { LogprobsMode } from "../options.js";
import { hashOf } from "./hash.js";
import type { Draw, DrawRequest, Policy, Sampler, ScoredToken } from "./policy.js";
import { RuleBook, viewPrompt } from "./script-match.js";
import { replyIds } from "./script-reply.js";
import type { Script } from "./script-schema.js";

export interface ScriptPolicyOptions {
  vocabulary: Vocabulary;
  eosId: number;
  seed: number;
  logprobsMode: LogprobsMode;
}

/**
 * The policy that recites. Its log probabilities are no model's, but they behave like one's: a value depends on the engine's seed,
 * the ids before it and the token, so that scoring a prompt gives the values that sampling gave, and a temperature scales them.
 */
export function createScriptPolicy(script: Script, options: ScriptPolicyOptions): Policy {
  const { vocabulary } = options;
  const rules = new RuleBook(script);
  // Every reply is spelled out once at the start, so that a script that cannot work is refused before the first request.
  const replies = [
    script.unmatched,
    ...script.rules.flatMap((rule) => rule.replies ?? (rule.reply ? [rule.reply] : [])),
  ];
  const ids = new Map(replies.map((reply) => [reply, replyIds(reply, vocabulary, options.eosId)]));
  const odds = new HashedOdds(hashOf("script", options.seed), vocabulary.size);
  return {
    name: "script",
    start(request: DrawRequest): Sampler {
      const { rule, reply } = rules.choose(viewPrompt(request.prompt, vocabulary));
      const draws = odds.along(request.prompt.ids, ids.get(reply) ?? []);
      const { temperature } = request.sampling;
      const shown = options.logprobsMode === "raw" || temperature === 0 ? 1 : temperature;
      return {
        delayMs: reply.delayMs,
        fault: rule?.fault ?? null,
        next: () => draws(shown, request.topCount),
      };
    },
    scorePrompt(prompt, temperature, topCount) {
      const draws = odds.along(prompt.slice(0, 1), prompt.slice(1));
      return prompt.slice(1).flatMap(() => draws(temperature, topCount) ?? []);
    },
  };
}

/** Log probabilities from a rolling hash of the ids so far. */
class HashedOdds {
  readonly #seed: number;
  readonly #vocabSize: number;

  constructor(seed: string, vocabSize: number) {
    this.#seed = Number.parseInt(seed.slice(0, 8), 16);
    this.#vocabSize = vocabSize;
  }

  /** Walks `ids` behind `prefix`: each call of the result gives the next one scored, null at the end. */
  along(prefix: readonly number[], ids: readonly number[]): (temperature: number, topCount: number) => Draw | null {
    let state = this.#seed;
    for (const id of prefix) state = mix(state, id);
    let at = 0;
    return (temperature, topCount) => {
      const id = ids[at++];
      if (id === undefined) return null;
      const logprob = (token: number) => Math.fround(logprobOf(mix(state, token)) / temperature);
      const own: ScoredToken = { id, logprob: logprob(id), rank: 1 };
      const others = Array.from({ length: Math.max(0, topCount - 1) }, (_, index): ScoredToken => {
        const rank = index + 2;
        return { id: (id + rank - 1) % this.#vocabSize, logprob: Math.fround(own.logprob - rank), rank };
      });
      state = mix(state, id);
      return { ...own, top: topCount === 0 ? [] : [own, ...others] };
    };
  }
}

/** One round of a 32-bit mixer (murmur3's). */
function mix(state: number, id: number): number {
  let hash = Math.imul(state ^ Math.imul(id + 0x9e3779b9, 0xcc9e2d51), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Between −2.01 and −0.01. */
function logprobOf(hash: number): number {
  return -(0.01 + (2 * hash) / 2 ** 32);
}
