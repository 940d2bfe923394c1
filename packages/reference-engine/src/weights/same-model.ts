import { TitoError } from "@tito/format";
import type { ModelConfig } from "../lm/config.js";
import type { Tokenizer } from "../lm/index.js";

/** `config.json`'s name of each number that must not change. */
const CONFIG_NAMES: Readonly<Record<keyof ModelConfig, string>> = {
  vocabSize: "vocab_size",
  hiddenSize: "hidden_size",
  intermediateSize: "intermediate_size",
  layers: "num_hidden_layers",
  heads: "num_attention_heads",
  headSize: "head_dim",
  normEpsilon: "rms_norm_eps",
  ropeBase: "rope_theta",
  contextTokensMax: "max_position_embeddings",
};

/** Throws `bad_request` that names the first number in which a model of new weights differs from the running one. */
export function assertSameShape(running: ModelConfig, fresh: ModelConfig, dir: string): void {
  for (const [key, name] of Object.entries(CONFIG_NAMES) as [keyof ModelConfig, string][]) {
    if (running[key] !== fresh[key])
      throw different(dir, `config.json: ${name} is ${fresh[key]}, the running model has ${running[key]}`);
  }
}

/** Throws `bad_request` that names the first token by which a vocabulary differs from the running one. */
export function assertSameVocabulary(running: Tokenizer, fresh: Tokenizer, dir: string): void {
  if (running.vocabSize !== fresh.vocabSize) {
    const sizes = `${fresh.vocabSize} tokens, the running model has ${running.vocabSize}`;
    throw different(dir, `tokenizer.json: ${sizes}`);
  }
  for (let id = 0; id < running.vocabSize; id++) {
    const [here, there] = [running.tokenBytes(id), fresh.tokenBytes(id)].map((bytes) => Buffer.from(bytes));
    if (here!.equals(there!)) continue;
    throw different(dir, `tokenizer.json: token ${id} is ${quoted(there!)}, the running model has ${quoted(here!)}`);
  }
}

const quoted = (bytes: Buffer): string => JSON.stringify(bytes.toString("utf8"));

function different(dir: string, problem: string): TitoError {
  return new TitoError("bad_request", `${dir}: ${problem}`, { hint: "the running weights stay" });
}
