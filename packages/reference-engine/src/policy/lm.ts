import { TitoError } from "@tito/format";
import { logSoftmax, logSoftmaxAt, type Model, type Rng, rngFrom, sampleToken } from "../lm/index.js";
import type { LogprobsMode } from "../options.js";
import type { Draw, DrawRequest, Policy, Sampler, Sampling, ScoredToken } from "./policy.js";

export interface LmPolicyOptions {
  seed: number;
  logprobsMode: LogprobsMode;
}

/** The policy that is a language model: full softmax over its own logits, drawn with a generator that depends on the request alone. */
export function createLmPolicy(model: Model, options: LmPolicyOptions): Policy {
  return {
    name: "lm",
    start: (request) => startSampler(model, options, request),
    scorePrompt: (ids, temperature, topCount) => scorePrompt(model, ids, temperature, topCount),
  };
}

function startSampler(model: Model, options: LmPolicyOptions, request: DrawRequest): Sampler {
  const { prompt, sampling, topCount } = request;
  const rng = generatorOf(options.seed, request);
  const session = model.newSession();
  const sampledIds: number[] = [];
  const shownTemperature = options.logprobsMode === "raw" || sampling.temperature === 0 ? 1 : sampling.temperature;
  return {
    delayMs: 0,
    fault: null,
    next() {
      const last = sampledIds.at(-1);
      const logits = last === undefined ? session.prefill(prompt.ids) : session.step(last);
      const drawn = sampleToken(logits, sampling, rng, { promptIds: prompt.ids, sampledIds });
      sampledIds.push(drawn.id);
      return {
        id: drawn.id,
        logprob: finite(options.logprobsMode === "raw" ? drawn.logprob : drawn.processedLogprob),
        rank: rankOf(logits, drawn.id),
        top: topOf(logits, shownTemperature, topCount),
      };
    },
  };
}

/** With a seed of its own a request always draws the same; without, by the engine's seed, the prompt and how often it was seen. */
function generatorOf(engineSeed: number, request: DrawRequest): Rng {
  const { seed }: Sampling = request.sampling;
  if (seed !== null) return rngFrom("request", seed, request.choice);
  return rngFrom("engine", engineSeed, Int32Array.from(request.prompt.ids), request.occurrence);
}

function scorePrompt(model: Model, ids: readonly number[], temperature: number, topCount: number): Draw[] {
  const scored: Draw[] = [];
  model.scan(ids, (position, logits) => {
    const id = ids[position + 1];
    if (id === undefined) return;
    scored.push({
      id,
      logprob: logSoftmaxAt(logits, id, temperature),
      rank: rankOf(logits, id),
      top: topOf(logits, temperature, topCount),
    });
  });
  return scored;
}

/** Weights that went wrong must not look like a sample. */
function finite(logprob: number): number {
  if (Number.isFinite(logprob)) return logprob;
  throw new TitoError("internal", `the model gave a log probability of ${logprob}`);
}

function rankOf(logits: Float32Array, id: number): number {
  const own = logits[id] ?? Number.NEGATIVE_INFINITY;
  let rank = 1;
  for (const logit of logits) if (logit > own) rank++;
  return rank;
}

function topOf(logits: Float32Array, temperature: number, count: number): ScoredToken[] {
  if (count === 0) return [];
  const logprobs = logSoftmax(logits, temperature);
  const order = Array.from(logprobs.keys()).sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0) || a - b);
  return order.slice(0, count).map((id, index) => ({ id, logprob: logprobs[id] ?? Number.NaN, rank: index + 1 }));
}
