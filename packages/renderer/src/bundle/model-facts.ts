/** What a trainer must know of the model whose prompts a bundle renders. */
import type { Tokenizer } from "../tokenizer/tokenizer.js";
import type { BundleManifest } from "./manifest.js";

export interface ModelFacts {
  /** Ids that the tokenizer knows, added tokens among them. A model's embedding may have more rows. */
  vocabulary_size: number;
  /** Ids that end a turn. */
  eos_ids: number[];
  /** Null where the template names no pad token. */
  pad_id: number | null;
  /** SHA-256 of the tokenizer.json and the chat template that the bundle was made from, in hex. */
  tokenizer_sha256: string;
  chat_template_sha256: string;
}

export function modelFactsOf(manifest: BundleManifest, tokenizer: Tokenizer, stopIds: readonly number[]): ModelFacts {
  const pad = manifest.template_variables.pad_token;
  return {
    vocabulary_size: tokenizer.vocabSize,
    eos_ids: [...stopIds],
    pad_id: (pad === undefined ? undefined : tokenizer.addedTokens.idByText.get(pad)) ?? null,
    tokenizer_sha256: manifest.sources.tokenizer_json_sha256,
    chat_template_sha256: manifest.sources.template_sha256,
  };
}
