/** Scores tokens again with an engine that speaks vLLM's completions route and gives `prompt_logprobs`. I/O edge. */
import { TitoError } from "@tito/format";
import { z } from "zod";

/** Where an engine says that a token cannot be, its log probability is minus infinity. */
const LOGPROB_MIN = -1000;

const entrySchema = z.record(z.string(), z.object({ logprob: z.union([z.number(), z.string(), z.null()]) })).nullable();
const replySchema = z.object({
  choices: z.array(z.object({ index: z.number(), prompt_logprobs: z.array(entrySchema).nullish() })),
});
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });

export interface Scorer {
  url: string;
  model: string;
  key: string | null;
}

/** The engine's first model when `model` is null. Errors: `upstream_unavailable`, `upstream_invalid`. */
export async function openScorer(given: { url: string; model: string | null; key: string | null }): Promise<Scorer> {
  const url = given.url.replace(/\/(v1\/?)?$/, "");
  if (given.model !== null) return { ...given, url, model: given.model };
  const { status, body } = await call(`${url}/v1/models`, given.key, null, null);
  const parsed = modelsSchema.safeParse(body);
  if (status !== 200 || !parsed.success)
    throw new TitoError("upstream_invalid", `${url}/v1/models names no model (status ${status})`, {
      hint: "give --model",
    });
  return { ...given, url, model: parsed.data.data[0]!.id };
}

/**
 * log π(tokens[i] | tokens[0..i)) of each prompt; index 0 is NaN. `refused`: the engine does not take these prompts, in its words.
 * Errors: `upstream_unavailable` when it cannot be reached or fails, `upstream_invalid` when it answers without scores.
 */
export async function scorePrompts(
  scorer: Scorer,
  prompts: readonly (readonly number[])[],
  temperature: number,
  signal: AbortSignal | undefined,
): Promise<{ scores: Float64Array[] } | { refused: string }> {
  const { status, body, text } = await call(`${scorer.url}/v1/completions`, scorer.key, signal ?? null, {
    model: scorer.model,
    prompt: prompts,
    max_tokens: 1,
    temperature: 0,
    prompt_logprobs: 0,
    ...(temperature === 1 ? {} : { prompt_logprobs_temperature: temperature }),
  });
  if (status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 404 && status !== 429)
    return { refused: text.slice(0, 200) };
  if (status !== 200)
    throw new TitoError("upstream_unavailable", `${scorer.url} answered ${status}: ${text.slice(0, 200)}`);
  const parsed = replySchema.safeParse(body);
  const choices = parsed.success ? [...parsed.data.choices].sort((a, b) => a.index - b.index) : [];
  const scores = choices.map((choice, i) => scoresOf(choice.prompt_logprobs ?? [], prompts[i] ?? []));
  if (scores.length !== prompts.length || scores.some((each) => each === null))
    throw new TitoError("upstream_invalid", `${scorer.url} does not give prompt_logprobs for each token`, {
      hint: "health needs an engine with vLLM's prompt_logprobs on /v1/completions",
    });
  return { scores: scores as Float64Array[] };
}

function scoresOf(entries: readonly z.infer<typeof entrySchema>[], tokens: readonly number[]): Float64Array | null {
  if (entries.length !== tokens.length) return null;
  const scores = new Float64Array(tokens.length).fill(Number.NaN);
  for (let i = 1; i < tokens.length; i += 1) {
    const entry = entries[i]?.[String(tokens[i])];
    if (entry === undefined) return null;
    const value = typeof entry.logprob === "number" ? entry.logprob : Number.NEGATIVE_INFINITY;
    scores[i] = Math.max(value, LOGPROB_MIN);
  }
  return scores;
}

async function call(url: string, key: string | null, signal: AbortSignal | null, body: unknown) {
  const headers = {
    "content-type": "application/json",
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  };
  try {
    const request = body === null ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(url, signal === null ? request : { ...request, signal });
    const text = await response.text();
    return { status: response.status, text, body: jsonOf(text) };
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new TitoError("upstream_unavailable", `${url} cannot be reached: ${String(cause)}`, { cause });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
