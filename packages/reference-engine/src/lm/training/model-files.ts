import type { ModelConfig } from "../config.js";
import { writeSafetensors } from "../safetensors.js";
import type { Tokenizer } from "../tokenizer.js";
import { namedTensors } from "./parameters.js";
import { POLICY_CONFIG, type TrainingRun } from "./recipe.js";

/** The files of a Hugging Face model directory, by name, for what was trained; the template itself is there already. */
export function modelFiles(
  run: TrainingRun,
  tokenizerJson: string,
  template: string,
): Map<string, string | Uint8Array> {
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
  const id = (content: string) => run.tokenizer.specialIds.get(content)!;
  const ids = { bos_token_id: null, eos_token_id: id("<|im_end|>"), pad_token_id: id("<|endoftext|>") };
  const names = { eos_token: "<|im_end|>", pad_token: "<|endoftext|>" };
  return new Map<string, string | Uint8Array>([
    ["config.json", json({ ...llamaConfig(POLICY_CONFIG), ...ids })],
    [
      "generation_config.json",
      json({
        ...ids,
        eos_token_id: [ids.eos_token_id, ids.pad_token_id],
        do_sample: true,
        temperature: 1,
        top_p: 1,
        top_k: 0,
      }),
    ],
    ["model.safetensors", writeSafetensors(namedTensors(run.trainer.parameters))],
    ["tokenizer.json", tokenizerJson],
    ["tokenizer_config.json", json(tokenizerConfig(run.tokenizer, names, template))],
    ["special_tokens_map.json", json(names)],
  ]);
}

function llamaConfig(config: ModelConfig) {
  return {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    torch_dtype: "float32",
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.heads,
    head_dim: config.headSize,
    hidden_act: "silu",
    max_position_embeddings: config.contextTokensMax,
    rms_norm_eps: config.normEpsilon,
    rope_theta: config.ropeBase,
    rope_scaling: null,
    tie_word_embeddings: true,
    attention_bias: false,
    attention_dropout: 0,
    mlp_bias: false,
    initializer_range: 0.02,
    use_cache: true,
  };
}

/** `chat_template` is repeated here for loaders that do not read chat_template.jinja. */
function tokenizerConfig(tokenizer: Tokenizer, names: Record<string, string>, template: string) {
  const flags = { lstrip: false, normalized: false, rstrip: false, single_word: false };
  const decoder = tokenizer.addedTokens.map(
    ({ id, content, special }) => [id, { content, ...flags, special }] as const,
  );
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    model_max_length: POLICY_CONFIG.contextTokensMax,
    clean_up_tokenization_spaces: false,
    added_tokens_decoder: Object.fromEntries(decoder),
    ...names,
    chat_template: template,
  };
}
