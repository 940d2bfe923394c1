import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rngFrom } from "../../src/lm/index.js";
import { type NamedTensor, writeSafetensors } from "../../src/lm/safetensors.js";
import { trainTokenizer } from "../../src/lm/training/bpe-trainer.js";

const TEMPLATE = fileURLToPath(new URL("../../../../fixtures/policy/chat_template.jinja", import.meta.url));

const CONFIG = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: 296,
  hidden_size: 64,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  head_dim: 32,
  rms_norm_eps: 1e-5,
  rope_theta: 500,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
  attention_bias: false,
  mlp_bias: false,
  hidden_act: "silu",
};

/** A complete model directory with random weights: it knows nothing, but its numbers are a real model's. */
export function makeModelDirectory(seed = "test weights"): { dir: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), "tito-engine-model-"));
  const tokenizer = trainTokenizer(
    ['{"name": "bash", "arguments": {"command": "ls -la"}} the answer is'],
    CONFIG.vocab_size,
  );
  const added = (JSON.parse(tokenizer) as { added_tokens: { id: number; content: string }[] }).added_tokens;
  const eos = added.find(({ content }) => content === "<|im_end|>")?.id;
  writeFileSync(join(dir, "config.json"), JSON.stringify({ ...CONFIG, eos_token_id: eos }));
  writeFileSync(join(dir, "tokenizer.json"), tokenizer);
  writeFileSync(join(dir, "model.safetensors"), writeSafetensors(randomTensors(seed)));
  cpSync(TEMPLATE, join(dir, "chat_template.jinja"));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}

function randomTensors(seed: string): Map<string, NamedTensor> {
  const rng = rngFrom(seed);
  const { hidden_size: d, intermediate_size: inner, vocab_size: vocab } = CONFIG;
  const random = (...shape: number[]): NamedTensor => {
    const size = shape.reduce((product, length) => product * length, 1);
    return { shape, data: Float32Array.from({ length: size }, () => (rng() - 0.5) * 0.5) };
  };
  const ones: NamedTensor = { shape: [d], data: new Float32Array(d).fill(1) };
  const layer = "model.layers.0";
  return new Map([
    ["model.embed_tokens.weight", random(vocab, d)],
    [`${layer}.input_layernorm.weight`, ones],
    [`${layer}.self_attn.q_proj.weight`, random(d, d)],
    [`${layer}.self_attn.k_proj.weight`, random(d, d)],
    [`${layer}.self_attn.v_proj.weight`, random(d, d)],
    [`${layer}.self_attn.o_proj.weight`, random(d, d)],
    [`${layer}.post_attention_layernorm.weight`, ones],
    [`${layer}.mlp.gate_proj.weight`, random(inner, d)],
    [`${layer}.mlp.up_proj.weight`, random(inner, d)],
    [`${layer}.mlp.down_proj.weight`, random(d, inner)],
    ["model.norm.weight", ones],
  ]);
}
