import { FaultBoard } from "./faults/board.js";
import { PromptHistory } from "./generate/prompt-history.js";
import { WeightVersion } from "./generate/weight-version.js";
import { loadModel } from "./lm/index.js";
import { RequestLog } from "./log.js";
import { type ModelDirectory, readModelDirectory } from "./model/directory.js";
import { Vocabulary } from "./model/vocabulary.js";
import type { ResolvedOptions } from "./options.js";
import { createLmPolicy } from "./policy/lm.js";
import type { Policy } from "./policy/policy.js";
import { createScriptPolicy } from "./policy/script.js";
import { readScript } from "./policy/script-schema.js";
import { ChatTemplate } from "./render/template.js";

/** A script recites to prompts of any harness; the model's own limit does not matter to it. */
const SCRIPT_MODEL_LEN = 262_144;

/** Everything that requests share. */
export interface Engine {
  options: ResolvedOptions;
  directory: ModelDirectory;
  vocabulary: Vocabulary;
  template: ChatTemplate;
  policy: Policy;
  /** Prompt and sampled tokens together. */
  maxModelLen: number;
  /** Seconds since 1970. */
  startedAt: number;
  board: FaultBoard;
  history: PromptHistory;
  weightVersion: WeightVersion;
  log: RequestLog;
}

/** Reads the model directory and the policy. Throws before anything listens. */
export async function loadEngine(options: ResolvedOptions): Promise<Engine> {
  const directory = readModelDirectory(options.weights);
  const vocabulary = new Vocabulary(directory.tokenizer);
  const template = new ChatTemplate(directory.chatTemplate, `${options.weights}/chat_template.jinja`);
  const policy = await loadPolicy(options, directory, vocabulary);
  const ownLimit = policy.name === "lm" ? directory.maxPositionEmbeddings : SCRIPT_MODEL_LEN;
  return {
    options,
    directory,
    vocabulary,
    template,
    policy,
    maxModelLen:
      policy.name === "lm" ? Math.min(options.maxModelLen ?? ownLimit, ownLimit) : (options.maxModelLen ?? ownLimit),
    startedAt: Math.floor(Date.now() / 1000),
    board: new FaultBoard(),
    history: new PromptHistory({ keepsSequences: options.promptTokensDetails }),
    weightVersion: new WeightVersion(),
    log: new RequestLog(options.logFile, options.testMode),
  };
}

async function loadPolicy(
  options: ResolvedOptions,
  directory: ModelDirectory,
  vocabulary: Vocabulary,
): Promise<Policy> {
  const { seed, logprobsMode, scriptFile } = options;
  if (scriptFile === null) return createLmPolicy(await loadModel(options.weights), { seed, logprobsMode });
  const [eosId = 0] = directory.eosIds;
  return createScriptPolicy(readScript(scriptFile), { vocabulary, eosId, seed, logprobsMode });
}
