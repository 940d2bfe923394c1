import type { ModelConfig } from "../config.js";
import { rngFrom } from "../random.js";
import { parseTokenizer, type Tokenizer } from "../tokenizer.js";
import { trainTokenizer } from "./bpe-trainer.js";
import { conversationRenderer, drawConversation, type Episode, tokenizeEpisode } from "./episode.js";
import { Optimizer } from "./optimizer.js";
import { initialise } from "./parameters.js";
import { Trainer } from "./trainer.js";

/** All that decides the weights, besides the code and the chat template. */
export interface Recipe {
  readonly seed: number;
  /** Training stops after the step that reaches this many tokens. */
  readonly tokens: number;
  readonly batchEpisodes: number;
  readonly episodeTokensMax: number;
  /** Conversations that the tokenizer is trained on. */
  readonly tokenizerTexts: number;
}

export const RECIPE: Recipe = {
  seed: 1,
  tokens: 3_000_000,
  batchEpisodes: 4,
  episodeTokensMax: 200,
  tokenizerTexts: 2000,
};

/** The policy's shape: 2 layers, 2 heads of 32 (the smallest head that vLLM's CPU attention takes), short RoPE base for short prompts. */
export const POLICY_CONFIG: ModelConfig = {
  vocabSize: 376,
  hiddenSize: 64,
  intermediateSize: 172,
  layers: 2,
  heads: 2,
  headSize: 32,
  normEpsilon: 1e-5,
  ropeBase: 500,
  contextTokensMax: 2048,
};

/** Trains the tokenizer on the same kind of conversation as the policy; returns `tokenizer.json`. */
export function makeTokenizer(recipe: Recipe, template: string): string {
  const render = conversationRenderer(template);
  const rng = rngFrom("tokenizer", recipe.seed);
  const texts = Array.from({ length: recipe.tokenizerTexts }, () => render(drawConversation(rng, true), false));
  return trainTokenizer(texts, POLICY_CONFIG.vocabSize);
}

/** One optimizer step: its number from 1, tokens seen so far, mean loss of the batch in nats a sampled token. */
export interface TrainingStep {
  readonly step: number;
  readonly tokens: number;
  readonly loss: number;
}

/** A training run that is advanced step by step. */
export interface TrainingRun {
  readonly trainer: Trainer;
  readonly tokenizer: Tokenizer;
  /** Steps until the token budget is used up. */
  steps(): Generator<TrainingStep>;
}

/** Share of episodes with date and directory: none in the first tenth of the tokens, all after four tenths. */
const surroundingsShare = (progress: number): number => Math.min(1, Math.max(0, (progress - 0.1) / 0.3));

/** Starts the run of a recipe. Two runs of one recipe give bit-identical losses and weights. */
export function startTraining(recipe: Recipe, template: string, tokenizerJson: string): TrainingRun {
  const tokenizer = parseTokenizer(tokenizerJson, "tokenizer.json");
  const render = conversationRenderer(template);
  const trainer = new Trainer(POLICY_CONFIG, { episodes: recipe.batchEpisodes, tokensMax: recipe.episodeTokensMax });
  initialise(trainer.parameters, rngFrom("weights", recipe.seed));
  const optimizer = new Optimizer(trainer.parameters);
  const rng = rngFrom("episodes", recipe.seed);
  const draw = (progress: number): Episode => {
    const surroundings = rng() < surroundingsShare(progress);
    return tokenizeEpisode(render(drawConversation(rng, surroundings), false), tokenizer);
  };
  return {
    trainer,
    tokenizer,
    *steps() {
      for (let step = 1, tokens = 0; tokens < recipe.tokens; step++) {
        const progress = tokens / recipe.tokens;
        const batch = Array.from({ length: recipe.batchEpisodes }, () => draw(progress));
        const loss = trainer.lossAndGradients(batch);
        optimizer.update(progress);
        tokens += batch.reduce((sum, { ids }) => sum + ids.length, 0);
        yield { step, tokens, loss };
      }
    },
  };
}
