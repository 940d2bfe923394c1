import type { ModelConfig } from "../config.js";
import { cosSin, log } from "../exact-math.js";
import type { Kernel, Tensor } from "../kernel.js";
import type { Rng } from "../random.js";
import type { NamedTensor } from "../safetensors.js";

/** One trainable tensor: its values and gradients, both slices of one flat array each. */
export interface Parameter {
  readonly name: string;
  readonly shape: readonly number[];
  readonly value: Tensor;
  readonly gradient: Tensor;
  /** For a matrix [out, in]: its [in, out] copy, refreshed before each step. */
  readonly transposed: Tensor | undefined;
}

interface LayerParameters {
  readonly inputNorm: Parameter;
  readonly query: Parameter;
  readonly key: Parameter;
  readonly value: Parameter;
  readonly output: Parameter;
  readonly mlpNorm: Parameter;
  readonly gate: Parameter;
  readonly up: Parameter;
  readonly down: Parameter;
}

export interface Parameters {
  readonly embedding: Parameter;
  readonly layers: readonly LayerParameters[];
  readonly finalNorm: Parameter;
  /** All of them in file order. */
  readonly all: readonly Parameter[];
  readonly values: Float32Array;
  readonly gradients: Float32Array;
}

/** Number of trainable floats. */
export function parameterCount({ vocabSize, hiddenSize: d, intermediateSize, layers }: ModelConfig): number {
  return vocabSize * d + layers * (4 * d * d + 3 * d * intermediateSize + 2 * d) + d;
}

/** Reserves all parameters, gradients and transposed copies in the kernel's memory; norms start at 1, the rest at 0. */
export function allocateParameters(config: ModelConfig, kernel: Kernel): Parameters {
  const { hiddenSize: d, intermediateSize: inner, vocabSize } = config;
  const count = parameterCount(config);
  const values = kernel.allocate(count);
  const gradients = kernel.allocate(count);
  const all: Parameter[] = [];
  let used = 0;
  const slice = (flat: Tensor, length: number): Tensor => ({
    at: flat.at + 4 * used,
    data: flat.data.subarray(used, used + length),
  });
  const add = (name: string, ...shape: [number] | [number, number]): Parameter => {
    const length = shape[0] * (shape[1] ?? 1);
    const transposed = shape.length === 2 ? kernel.allocate(length) : undefined;
    const parameter = { name, shape, value: slice(values, length), gradient: slice(gradients, length), transposed };
    if (shape.length === 1) parameter.value.data.fill(1);
    used += length;
    all.push(parameter);
    return parameter;
  };
  const embedding = add("model.embed_tokens.weight", vocabSize, d);
  const layers = Array.from({ length: config.layers }, (_, index) => {
    const prefix = `model.layers.${index}`;
    return {
      inputNorm: add(`${prefix}.input_layernorm.weight`, d),
      query: add(`${prefix}.self_attn.q_proj.weight`, d, d),
      key: add(`${prefix}.self_attn.k_proj.weight`, d, d),
      value: add(`${prefix}.self_attn.v_proj.weight`, d, d),
      output: add(`${prefix}.self_attn.o_proj.weight`, d, d),
      mlpNorm: add(`${prefix}.post_attention_layernorm.weight`, d),
      gate: add(`${prefix}.mlp.gate_proj.weight`, inner, d),
      up: add(`${prefix}.mlp.up_proj.weight`, inner, d),
      down: add(`${prefix}.mlp.down_proj.weight`, d, inner),
    };
  });
  return {
    embedding,
    layers,
    finalNorm: add("model.norm.weight", d),
    all,
    values: values.data,
    gradients: gradients.data,
  };
}

/**
 * Random start: normal, 1/√in for projections (half where they add to the residual stream), 0.1 for embeddings. A run that started from 0.05 throughout was
 * still on its first plateau after 850,000 tokens.
 */
export function initialise(parameters: Parameters, rng: Rng): void {
  for (const { name, shape, value } of parameters.all) {
    if (shape.length === 1) continue;
    const residual = name.includes("o_proj") || name.includes("down_proj");
    const deviation = name.includes("embed") ? 0.1 : (residual ? 0.5 : 1) / Math.sqrt(shape[1]!);
    for (let i = 0; i < value.data.length; i++) value.data[i] = deviation * normal(rng);
  }
}

/** One standard normal number (Box–Muller, cosine half). */
function normal(rng: Rng): number {
  return Math.sqrt(-2 * log(1 - rng())) * cosSin(2 * Math.PI * rng())[0];
}

/** Refreshes the [in, out] copies after a change of the values. */
export function transposeAll(parameters: Parameters): void {
  for (const { shape, value, transposed } of parameters.all) {
    if (transposed) transpose(value.data, shape[0]!, shape[1]!, shape[1]!, transposed.data, shape[0]!);
  }
}

/** to[c, r] = from[r, c]; strides in floats. */
export function transpose(
  from: Float32Array,
  rows: number,
  columns: number,
  strideFrom: number,
  to: Float32Array,
  strideTo: number,
): void {
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) to[c * strideTo + r] = from[r * strideFrom + c]!;
}

/** The parameters under their Hugging Face names, ready to be written. */
export function namedTensors(parameters: Parameters): Map<string, NamedTensor> {
  return new Map(parameters.all.map(({ name, shape, value }) => [name, { shape, data: value.data }]));
}
