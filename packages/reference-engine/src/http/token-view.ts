import type { Fault } from "../faults/schema.js";
import type { Vocabulary } from "../model/vocabulary.js";
import type { Draw, ScoredToken } from "../policy/policy.js";

/** JSON has no minus infinity: vLLM's floor. */
const LOGPROB_FLOOR = -9999;
/** Stands for a bare NaN until the reply is text. */
const NAN_PLACEHOLDER = "\u0000NaN";

export interface TokenViewOptions {
  vocabulary: Vocabulary;
  tokensAsIds: boolean;
  returnTokenIds: boolean;
  /** Null when log probabilities were not asked for. */
  topCount: number | null;
  fault: Fault | null;
  /** The reply goes out in pieces. */
  streamed: boolean;
}

/** Ids and log probabilities in vLLM's shapes, with whatever the fault of this request does to them. */
export class TokenView {
  readonly #options: TokenViewOptions;

  constructor(options: TokenViewOptions) {
    this.#options = options;
  }

  /** Whether a chunk without text has anything to say. */
  get hasEvidence(): boolean {
    return this.#options.returnTokenIds || this.#options.topCount !== null;
  }

  /** `{token_ids}`, or nothing when not asked for. `first`: how many tokens of the choice came before. */
  tokenIds(ids: readonly number[], first = 0): { token_ids?: number[] } {
    const shown = this.#options.returnTokenIds && this.#options.fault?.kind !== "missing_ids";
    const kept = ids.slice(0, Math.max(0, this.#keptTokens - first));
    return shown && (kept.length > 0 || ids.length === 0) ? { token_ids: kept } : {};
  }

  /** Tokens whose ids and values are told. */
  get #keptTokens(): number {
    const { fault, streamed } = this.#options;
    return fault?.kind === "lost_ids" && streamed ? fault.after : Number.POSITIVE_INFINITY;
  }

  /** `{prompt_token_ids}`, or nothing when not asked for. */
  promptTokenIds(ids: readonly number[]): { prompt_token_ids?: number[] } {
    const shown = this.#options.returnTokenIds && this.#options.fault?.kind !== "missing_prompt_ids";
    return shown ? { prompt_token_ids: [...ids] } : {};
  }

  /** Chat's `logprobs`. `first`: how many tokens of the choice came before. */
  chatLogprobs(draws: readonly Draw[], first: number): object | null {
    const shown = this.#shown(draws, first);
    if (shown === null) return null;
    const entry = (token: ScoredToken, logprob: unknown) => ({
      token: this.name(token.id),
      logprob,
      bytes: Array.from(this.#options.vocabulary.bytes(token.id)),
    });
    return {
      content: shown.map(({ draw, logprob }) => ({
        ...entry(draw, logprob),
        top_logprobs: draw.top.map((token) => entry(token, floored(token.logprob))),
      })),
    };
  }

  /** The completions endpoint's `logprobs`. `offset`: characters of the choice's text that came before. */
  completionLogprobs(draws: readonly Draw[], first: number, offset: number): object | null {
    const shown = this.#shown(draws, first);
    if (shown === null) return null;
    let at = offset;
    return {
      text_offset: shown.map(({ draw }) => {
        const own = at;
        at += this.#options.vocabulary.tokenText(draw.id).length;
        return own;
      }),
      token_logprobs: shown.map(({ logprob }) => logprob),
      tokens: shown.map(({ draw }) => this.name(draw.id)),
      top_logprobs: shown.map(({ draw, logprob }) => {
        const named = draw.top.map((token): [string, unknown] => [this.name(token.id), floored(token.logprob)]);
        return Object.fromEntries([
          [this.name(draw.id), logprob],
          ...named.filter(([name]) => name !== this.name(draw.id)),
        ]);
      }),
    };
  }

  /** The token-in, token-out endpoint's `logprobs`. */
  generateLogprobs(draws: readonly Draw[], first: number): object | null {
    const shown = this.#shown(draws, first);
    if (shown === null) return null;
    return {
      content: shown.map(({ draw, logprob }) => ({
        token_id: draw.id,
        logprob,
        rank: draw.rank,
        top_logprobs: draw.top.map(({ id, logprob: value, rank }) => ({ token_id: id, logprob: floored(value), rank })),
      })),
    };
  }

  /** `prompt_logprobs`: null for the first position, then the prompt's token and the most probable ones by id. */
  promptLogprobs(scores: readonly Draw[] | null): (object | null)[] | null {
    if (scores === null) return null;
    const entry = (token: ScoredToken) => ({
      logprob: floored(token.logprob),
      rank: token.rank,
      decoded_token: this.#options.vocabulary.tokenText(token.id),
    });
    return [
      null,
      ...scores.map((score) => Object.fromEntries([score, ...score.top].map((token) => [token.id, entry(token)]))),
    ];
  }

  /** How a token is called. */
  name(id: number): string {
    return this.#options.tokensAsIds ? `token_id:${id}` : this.#options.vocabulary.tokenText(id);
  }

  #shown(draws: readonly Draw[], first: number): { draw: Draw; logprob: unknown }[] | null {
    const { topCount, fault } = this.#options;
    if (topCount === null || fault?.kind === "missing_logprobs") return null;
    if (draws.length > 0 && first >= this.#keptTokens) return null;
    const all = draws.slice(0, this.#keptTokens - first).map((draw, index) => ({
      draw,
      logprob: fault?.kind === "nan_logprobs" && first + index === 0 ? nanAs(fault.as) : floored(draw.logprob),
    }));
    return fault?.kind === "short_logprobs" && first === 0 ? all.slice(1) : all;
  }
}

/** A reply as JSON text. */
export function stringify(value: unknown): string {
  return JSON.stringify(value).replaceAll(JSON.stringify(NAN_PLACEHOLDER), "NaN");
}

function floored(logprob: number): number {
  return Math.max(logprob, LOGPROB_FLOOR);
}

function nanAs(as: "null" | "string" | "literal" | "floor"): unknown {
  switch (as) {
    case "null":
      return null;
    case "string":
      return "NaN";
    case "floor":
      return LOGPROB_FLOOR;
    case "literal":
      return NAN_PLACEHOLDER;
  }
}
