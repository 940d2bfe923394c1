import { TitoError } from "@tito/format";
import { z } from "zod";

const configSchema = z.looseObject({
  architectures: z.tuple([z.literal("LlamaForCausalLM")]),
  vocab_size: z.int().min(4).max(8192).multipleOf(4),
  hidden_size: z.int().min(8).max(512).multipleOf(4),
  intermediate_size: z.int().min(4).max(2048).multipleOf(4),
  num_hidden_layers: z.int().min(1).max(16),
  num_attention_heads: z.int().min(1).max(16),
  num_key_value_heads: z.int().min(1).max(16),
  head_dim: z.int().min(2).max(128).multipleOf(4),
  rms_norm_eps: z.number().positive(),
  /** Where transformers wrote the RoPE base before version 5. */
  rope_theta: z.number().positive().optional(),
  rope_scaling: z.null().optional(),
  /** Where it writes the base since. */
  rope_parameters: z
    .object({ rope_theta: z.number().positive(), rope_type: z.literal("default").optional() })
    .nullish(),
  max_position_embeddings: z.int().min(16).max(8192),
  tie_word_embeddings: z.literal(true),
  attention_bias: z.literal(false),
  mlp_bias: z.literal(false),
  hidden_act: z.literal("silu"),
});

/** What the forward pass needs of a Hugging Face `config.json` of a small Llama with tied embeddings. */
export interface ModelConfig {
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly headSize: number;
  readonly normEpsilon: number;
  readonly ropeBase: number;
  /** Longest sequence, in tokens. */
  readonly contextTokensMax: number;
}

/** Reads `config.json`. Throws `bundle_invalid` for any architecture that the forward pass does not compute exactly. */
export function parseConfig(text: string, file: string): ModelConfig {
  const parsed = configSchema.safeParse(parseJson(text, file));
  if (!parsed.success) throw invalidModel(file, z.prettifyError(parsed.error).replaceAll("\n", " "));
  const config = parsed.data;
  if (config.num_attention_heads * config.head_dim !== config.hidden_size) {
    throw invalidModel(file, "num_attention_heads × head_dim must be hidden_size");
  }
  if (config.num_key_value_heads !== config.num_attention_heads) {
    throw invalidModel(file, "grouped key/value heads are not supported");
  }
  const ropeBase = ropeBaseOf(config, file);
  return {
    vocabSize: config.vocab_size,
    hiddenSize: config.hidden_size,
    intermediateSize: config.intermediate_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    headSize: config.head_dim,
    normEpsilon: config.rms_norm_eps,
    ropeBase,
    contextTokensMax: config.max_position_embeddings,
  };
}

function ropeBaseOf({ rope_theta, rope_parameters }: z.infer<typeof configSchema>, file: string): number {
  const base = rope_parameters?.rope_theta ?? rope_theta;
  if (base === undefined) throw invalidModel(file, "neither rope_theta nor rope_parameters.rope_theta is given");
  if (rope_theta !== undefined && rope_theta !== base)
    throw invalidModel(file, `rope_theta is ${rope_theta}, but rope_parameters.rope_theta is ${base}`);
  return base;
}

/** JSON text → value, with the file named in the error. */
export function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidModel(file, error instanceof Error ? error.message : String(error));
  }
}

/** The error for a model directory that cannot be used as it is. */
export function invalidModel(file: string, problem: string): TitoError {
  return new TitoError("bundle_invalid", `${file}: ${problem}`, {
    hint: "Point the engine at a model directory such as fixtures/policy, or train one with scripts/train-policy.ts.",
  });
}
