import { FaultBoard } from "./faults/board.js";
import { PromptHistory } from "./generate/prompt-history.js";
import { Traffic } from "./generate/traffic.js";
import { loadModel } from "./lm/index.js";
import { RequestLog } from "./log.js";
import { type ModelDirectory, readModelDirectory } from "./model/directory.js";
import { Vocabulary } from "./model/vocabulary.js";
import type { ResolvedOptions } from "./options.js";
import { createLmPolicy } from "./policy/lm.js";
import { createScriptPolicy } from "./policy/script.js";
import { readScript } from "./policy/script-schema.js";
import { ChatTemplate } from "./render/template.js";
import { WeightStore } from "./weights/weight-store.js";

/** A script recites to prompts of any harness; the model's own limit does not matter to it. */
const SCRIPT_MODEL_LEN = 262_144;

/** Everything that requests share. */
export interface Engine {
  options: ResolvedOptions;
  directory: ModelDirectory;
  vocabulary: Vocabulary;
  template: ChatTemplate;
  weights: WeightStore;
  /** Prompt and sampled tokens together. */
  maxModelLen: number;
  /** Seconds since 1970. */
  startedAt: number;
  board: FaultBoard;
  history: PromptHistory;
  traffic: Traffic;
  log: RequestLog;
}

/** Reads the model directory and the policy. Throws before anything listens. */
export async function loadEngine(options: ResolvedOptions): Promise<Engine> {
  const directory = readModelDirectory(options.weights);
  const vocabulary = new Vocabulary(directory.tokenizer);
  const template = new ChatTemplate(directory.chatTemplate, `${options.weights}/chat_template.jinja`);
  const weights = await loadWeights(options, directory, vocabulary);
  const isModel = weights.current.policy.name === "lm";
  const ownLimit = isModel ? directory.maxPositionEmbeddings : SCRIPT_MODEL_LEN;
  return {
    options,
    directory,
    vocabulary,
    template,
    weights,
    maxModelLen: isModel ? Math.min(options.maxModelLen ?? ownLimit, ownLimit) : (options.maxModelLen ?? ownLimit),
    startedAt: Math.floor(Date.now() / 1000),
    board: new FaultBoard(),
    history: new PromptHistory({ keepsSequences: options.promptTokensDetails }),
    traffic: new Traffic(),
    log: new RequestLog(options.logFile, options.testMode),
  };
}

async function loadWeights(
  options: ResolvedOptions,
  directory: ModelDirectory,
  vocabulary: Vocabulary,
): Promise<WeightStore> {
  const { seed, logprobsMode, scriptFile, weights: dir } = options;
  if (scriptFile === null) {
    const model = await loadModel(dir);
    const policy = createLmPolicy(model, { seed, logprobsMode });
    return new WeightStore({ policy, dir, model }, { seed, logprobsMode });
  }
  const [eosId = 0] = directory.eosIds;
  const policy = createScriptPolicy(readScript(scriptFile), { vocabulary, eosId, seed, logprobsMode });
  return new WeightStore({ policy, dir, model: null }, { seed, logprobsMode });
}
