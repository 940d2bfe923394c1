import type { ModelConfig } from "./config.js";
import { cosSin, exp, log } from "./exact-math.js";
import type { Kernel, Tensor } from "./kernel.js";

/** Weights of one layer, each matrix transposed to [in, out] for the kernel. */
interface LayerWeights {
  readonly inputNorm: Float32Array;
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly output: Tensor;
  readonly mlpNorm: Float32Array;
  readonly gate: Tensor;
  readonly up: Tensor;
  readonly down: Tensor;
}

/** Keys and values of the tokens seen so far, one pair of arrays a layer; rows of hiddenSize floats. */
export interface KeyValueCache {
  length: number;
  readonly keys: Float32Array[];
  readonly values: Float32Array[];
}

/** Everything that the forward pass reads, and the scratch rows it writes. */
export interface Network {
  readonly config: ModelConfig;
  readonly kernel: Kernel;
  readonly embedding: Float32Array;
  readonly head: Tensor;
  readonly layers: readonly LayerWeights[];
  readonly finalNorm: Float32Array;
  /** [position, headSize]: cosines, then sines, of headSize / 2 frequencies each. */
  readonly rope: Float32Array;
  readonly scratch: {
    readonly x: Tensor;
    readonly h: Tensor;
    readonly q: Tensor;
    readonly k: Tensor;
    readonly v: Tensor;
    readonly gate: Tensor;
    readonly up: Tensor;
    readonly logits: Tensor;
    readonly scores: Float64Array;
    readonly sums: Float64Array;
  };
}

/** Rows computed together. A row's result does not depend on it. */
export const CHUNK_ROWS = 64;

/** Rotation table for positions below `positions`; angles rounded to f32 as the reference implementation computes them. */
export function ropeTable(config: { headSize: number; ropeBase: number }, positions: number): Float32Array {
  const half = config.headSize / 2;
  const table = new Float32Array(positions * config.headSize);
  for (let i = 0; i < half; i++) {
    const frequency = Math.fround(1 / Math.fround(power(config.ropeBase, i / half)));
    for (let position = 0; position < positions; position++) {
      const [cos, sin] = cosSin(Math.fround(position * frequency));
      table[position * config.headSize + i] = cos;
      table[position * config.headSize + half + i] = sin;
    }
  }
  return table;
}

const power = (base: number, exponent: number): number => exp(exponent * log(base));

/**
 * Runs the tokens `ids` (at most CHUNK_ROWS) behind the cache and appends them to it. The final hidden rows, normed, are left in `scratch.h`.
 * Llama as transformers computes it: RMSNorm, half-split rotary positions, causal attention, SwiGLU.
 */
export function forwardChunk(network: Network, cache: KeyValueCache, ids: Int32Array): void {
  const { config, kernel, scratch } = network;
  const rows = ids.length;
  const size = config.hiddenSize;
  const inner = config.intermediateSize;
  const { x, h, q, k, v, gate, up } = scratch;
  for (let row = 0; row < rows; row++)
    x.data.set(network.embedding.subarray(ids[row]! * size, (ids[row]! + 1) * size), row * size);
  network.layers.forEach((layer, index) => {
    normRows(x.data, layer.inputNorm, h.data, rows, config);
    kernel.gemm(q.at, h.at, layer.query.at, rows, size, size, size, size, size, 0);
    kernel.gemm(k.at, h.at, layer.key.at, rows, size, size, size, size, size, 0);
    kernel.gemm(v.at, h.at, layer.value.at, rows, size, size, size, size, size, 0);
    for (let row = 0; row < rows; row++) {
      rotateRow(q.data, row * size, network, cache.length + row);
      rotateRow(k.data, row * size, network, cache.length + row);
    }
    const keys = cache.keys[index]!;
    const values = cache.values[index]!;
    keys.set(k.data.subarray(0, rows * size), cache.length * size);
    values.set(v.data.subarray(0, rows * size), cache.length * size);
    for (let row = 0; row < rows; row++) {
      attendRow(q.data, row * size, keys, values, cache.length + row + 1, network, h.data);
    }
    kernel.gemm(x.at, h.at, layer.output.at, rows, size, size, size, size, size, 1);
    normRows(x.data, layer.mlpNorm, h.data, rows, config);
    kernel.gemm(gate.at, h.at, layer.gate.at, rows, inner, size, size, inner, inner, 0);
    kernel.gemm(up.at, h.at, layer.up.at, rows, inner, size, size, inner, inner, 0);
    for (let i = 0; i < rows * inner; i++) {
      const g = gate.data[i]!;
      gate.data[i] = (g / (1 + exp(-g))) * up.data[i]!;
    }
    kernel.gemm(x.at, gate.at, layer.down.at, rows, size, inner, inner, size, size, 1);
  });
  cache.length += rows;
  normRows(x.data, network.finalNorm, h.data, rows, config);
}

/** Logits of `count` rows of `scratch.h` from row `first`, into `scratch.logits`. */
export function logitRows(network: Network, first: number, count: number): void {
  const { config, kernel, scratch, head } = network;
  const { hiddenSize: size, vocabSize } = config;
  kernel.gemm(
    scratch.logits.at,
    scratch.h.at + first * size * 4,
    head.at,
    count,
    vocabSize,
    size,
    size,
    vocabSize,
    vocabSize,
    0,
  );
}

function normRows(x: Float32Array, weight: Float32Array, out: Float32Array, rows: number, config: ModelConfig): void {
  const size = config.hiddenSize;
  for (let row = 0; row < rows; row++) {
    const at = row * size;
    let squares = 0;
    for (let i = 0; i < size; i++) squares += x[at + i]! * x[at + i]!;
    const scale = 1 / Math.sqrt(squares / size + config.normEpsilon);
    for (let i = 0; i < size; i++) out[at + i] = x[at + i]! * scale * weight[i]!;
  }
}

function rotateRow(data: Float32Array, at: number, network: Network, position: number): void {
  const { headSize, heads } = network.config;
  const half = headSize / 2;
  const angles = position * headSize;
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < half; i++) {
      const first = at + head * headSize + i;
      const a = data[first]!;
      const b = data[first + half]!;
      const cos = network.rope[angles + i]!;
      const sin = network.rope[angles + half + i]!;
      data[first] = a * cos - b * sin;
      data[first + half] = b * cos + a * sin;
    }
  }
}

/** Attention of one query over the first `count` cached rows; sums run in f64 in one fixed order, whatever the batch. */
function attendRow(
  q: Float32Array,
  at: number,
  keys: Float32Array,
  values: Float32Array,
  count: number,
  network: Network,
  out: Float32Array,
): void {
  const { headSize, heads, hiddenSize: size } = network.config;
  const { scores, sums } = network.scratch;
  const scale = 1 / Math.sqrt(headSize);
  for (let head = 0; head < heads; head++) {
    const offset = head * headSize;
    let highest = Number.NEGATIVE_INFINITY;
    for (let j = 0; j < count; j++) {
      let dot = 0;
      for (let i = 0; i < headSize; i++) dot += q[at + offset + i]! * keys[j * size + offset + i]!;
      scores[j] = dot * scale;
      if (scores[j]! > highest) highest = scores[j]!;
    }
    let total = 0;
    for (let j = 0; j < count; j++) {
      scores[j] = exp(scores[j]! - highest);
      total += scores[j]!;
    }
    sums.fill(0);
    for (let j = 0; j < count; j++) {
      const weight = scores[j]!;
      const row = j * size + offset;
      for (let i = 0; i < headSize; i++) sums[i]! += weight * values[row + i]!;
    }
    for (let i = 0; i < headSize; i++) out[at + offset + i] = sums[i]! / total;
  }
}
