import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import { invalidModel, type ModelConfig, parseConfig } from "./config.js";
import { CHUNK_ROWS, forwardChunk, type KeyValueCache, logitRows, type Network, ropeTable } from "./forward.js";
import { createKernel, type Kernel, type Tensor } from "./kernel.js";
import { logSoftmaxAt } from "./log-softmax.js";
import { type NamedTensor, readSafetensors } from "./safetensors.js";
import { parseTokenizer, type Tokenizer } from "./tokenizer.js";

/** One sequence under way: the keys and values of its tokens so far. */
interface Session {
  /** Tokens so far. */
  readonly length: number;
  /** Appends the tokens and returns the logits behind the last one, [vocabSize]. At least one id; `context_overflow` beyond the context. */
  prefill(ids: ArrayLike<number>): Float32Array;
  /** Appends one sampled token; the same as `prefill([id])`. */
  step(id: number): Float32Array;
  /** An independent copy that continues from here. */
  fork(): Session;
}

/** A loaded language model. Prefill, step and logprobs give bit-identical numbers for the same tokens. */
export interface Model {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  /** SHA-256 over config.json and model.safetensors as they were read. */
  readonly digest: string;
  newSession(): Session;
  /** log π(ids[i] | ids[0..i)) at the temperature, float32-exact; position 0 is NaN. */
  logprobs(ids: ArrayLike<number>, temperature?: number): Float32Array;
  /** Calls `visit(i, logits)` with the logits behind ids[i], for every i in order. The array is reused: copy what must stay. */
  scan(ids: ArrayLike<number>, visit: (position: number, logits: Float32Array) => void): void;
}

/** What a directory's files are held against before its weights are looked at. */
export interface LoadOptions {
  /** Of a directory without a tokenizer.json, as a trainer saves it. Without this one such a directory is refused. */
  readonly tokenizer?: Tokenizer;
  /** Throws when the directory holds a model that the caller cannot use. */
  readonly check?: (config: ModelConfig, tokenizer: Tokenizer) => void;
}

/** Reads config.json, tokenizer.json and model.safetensors of a directory. Throws `bundle_invalid` when a file is missing or does not fit. */
export async function loadModel(dir: string, options: LoadOptions = {}): Promise<Model> {
  const files = ["config.json", "model.safetensors", "tokenizer.json"].map((name) => join(dir, name));
  const [config, weights, tokens] = await Promise.all([
    readPart(files[0]!),
    readPart(files[1]!),
    options.tokenizer === undefined || existsSync(files[2]!) ? readPart(files[2]!) : null,
  ]);
  const parsed = parseConfig(config.toString("utf8"), files[0]!);
  const tokenizer = tokens === null ? options.tokenizer! : parseTokenizer(tokens.toString("utf8"), files[2]!);
  options.check?.(parsed, tokenizer);
  const digest = createHash("sha256").update(config).update(weights).digest("hex");
  return createModel({ config: parsed, tokenizer, tensors: readSafetensors(weights, files[1]!), digest });
}

async function readPart(file: string): Promise<Buffer> {
  return readFile(file).catch((cause: unknown) => {
    throw invalidModel(file, cause instanceof Error ? cause.message : String(cause));
  });
}

/** A model from its parts; `tensors` under their Hugging Face names. */
function createModel({
  config,
  tokenizer,
  tensors,
  digest,
}: Pick<Model, "config" | "tokenizer" | "digest"> & { tensors: ReadonlyMap<string, NamedTensor> }): Model {
  if (tokenizer.vocabSize !== config.vocabSize) {
    throw invalidModel("tokenizer.json", `${tokenizer.vocabSize} tokens, but config.json says ${config.vocabSize}`);
  }
  const network = createNetwork(config, tensors);
  return {
    config,
    tokenizer,
    digest,
    newSession: () => createSession(network, emptyCache(config)),
    logprobs(ids, temperature = 1) {
      const out = new Float32Array(ids.length).fill(Number.NaN);
      scan(network, ids, (position, logits) => {
        if (position + 1 < ids.length) out[position + 1] = logSoftmaxAt(logits, ids[position + 1]!, temperature);
      });
      return out;
    },
    scan: (ids, visit) => scan(network, ids, visit),
  };
}

function createSession(network: Network, cache: KeyValueCache): Session {
  const prefill = (ids: ArrayLike<number>): Float32Array => {
    if (ids.length === 0) throw new RangeError("prefill needs at least one token");
    const rows = runChunks(network, cache, ids, () => {});
    logitRows(network, rows - 1, 1);
    return network.scratch.logits.data.slice(0, network.config.vocabSize);
  };
  return {
    get length() {
      return cache.length;
    },
    prefill,
    step: (id) => prefill([id]),
    fork: () => createSession(network, copyCache(cache)),
  };
}

function scan(network: Network, ids: ArrayLike<number>, visit: (position: number, logits: Float32Array) => void): void {
  const { vocabSize } = network.config;
  let position = 0;
  runChunks(network, emptyCache(network.config), ids, (rows) => {
    logitRows(network, 0, rows);
    for (let row = 0; row < rows; row++) {
      visit(position++, network.scratch.logits.data.subarray(row * vocabSize, (row + 1) * vocabSize));
    }
  });
}

/** Appends all ids to the cache, chunk by chunk; returns the rows of the last chunk. */
function runChunks(
  network: Network,
  cache: KeyValueCache,
  ids: ArrayLike<number>,
  after: (rows: number) => void,
): number {
  const { config } = network;
  const all = Int32Array.from(ids);
  if (cache.length + all.length > config.contextTokensMax) {
    throw new TitoError(
      "context_overflow",
      `${cache.length + all.length} tokens, the model's context holds ${config.contextTokensMax}`,
    );
  }
  for (const id of all)
    if (id < 0 || id >= config.vocabSize) throw new RangeError(`token id ${id} is outside the vocabulary`);
  growCache(cache, cache.length + all.length, config.hiddenSize);
  let rows = 0;
  for (let from = 0; from < all.length; from += CHUNK_ROWS) {
    const chunk = all.subarray(from, from + CHUNK_ROWS);
    rows = chunk.length;
    forwardChunk(network, cache, chunk);
    after(rows);
  }
  return rows;
}

function emptyCache(config: ModelConfig): KeyValueCache {
  const arrays = () => Array.from({ length: config.layers }, () => new Float32Array(0));
  return { length: 0, keys: arrays(), values: arrays() };
}

function copyCache(cache: KeyValueCache): KeyValueCache {
  return { length: cache.length, keys: cache.keys.map((a) => a.slice()), values: cache.values.map((a) => a.slice()) };
}

/** Makes room for `tokens` rows, at least doubling, so that a long decode copies each row a bounded number of times. */
function growCache(cache: KeyValueCache, tokens: number, size: number): void {
  const room = (cache.keys[0]?.length ?? 0) / size;
  if (tokens <= room) return;
  const grown = Math.max(tokens, 2 * room, 256) * size;
  for (const arrays of [cache.keys, cache.values]) {
    for (let layer = 0; layer < arrays.length; layer++) {
      const bigger = new Float32Array(grown);
      bigger.set(arrays[layer]!.subarray(0, cache.length * size));
      arrays[layer] = bigger;
    }
  }
}

function createNetwork(config: ModelConfig, tensors: ReadonlyMap<string, NamedTensor>): Network {
  const { hiddenSize: size, intermediateSize: inner, vocabSize, layers } = config;
  const weightFloats = size * vocabSize + layers * (4 * size * size + 3 * size * inner);
  const scratchFloats = CHUNK_ROWS * (5 * size + 2 * inner + vocabSize);
  const kernel = createKernel(weightFloats + scratchFloats);
  const left = new Set(tensors.keys());
  const rows = (columns: number) => kernel.allocate(CHUNK_ROWS * columns);
  const take = (name: string, ...shape: number[]): Float32Array => {
    const tensor = tensors.get(name);
    if (!tensor) throw invalidModel("model.safetensors", `tensor ${name} is missing`);
    if (tensor.shape.join() !== shape.join())
      throw invalidModel("model.safetensors", `tensor ${name} has shape ${tensor.shape}, not ${shape}`);
    if (!tensor.data.every(Number.isFinite))
      throw invalidModel("model.safetensors", `tensor ${name} holds a value that is no finite number`);
    left.delete(name);
    return tensor.data;
  };
  const matrix = (name: string, out: number, inputs: number) =>
    transposed(kernel, take(name, out, inputs), out, inputs);
  const embedding = take("model.embed_tokens.weight", vocabSize, size);
  const network: Network = {
    config,
    kernel,
    embedding,
    head: transposed(kernel, embedding, vocabSize, size),
    layers: Array.from({ length: layers }, (_, index) => {
      const prefix = `model.layers.${index}`;
      return {
        inputNorm: take(`${prefix}.input_layernorm.weight`, size),
        query: matrix(`${prefix}.self_attn.q_proj.weight`, size, size),
        key: matrix(`${prefix}.self_attn.k_proj.weight`, size, size),
        value: matrix(`${prefix}.self_attn.v_proj.weight`, size, size),
        output: matrix(`${prefix}.self_attn.o_proj.weight`, size, size),
        mlpNorm: take(`${prefix}.post_attention_layernorm.weight`, size),
        gate: matrix(`${prefix}.mlp.gate_proj.weight`, inner, size),
        up: matrix(`${prefix}.mlp.up_proj.weight`, inner, size),
        down: matrix(`${prefix}.mlp.down_proj.weight`, size, inner),
      };
    }),
    finalNorm: take("model.norm.weight", size),
    rope: ropeTable(config, config.contextTokensMax),
    scratch: {
      x: rows(size),
      h: rows(size),
      q: rows(size),
      k: rows(size),
      v: rows(size),
      gate: rows(inner),
      up: rows(inner),
      logits: rows(vocabSize),
      scores: new Float64Array(config.contextTokensMax),
      sums: new Float64Array(config.headSize),
    },
  };
  refuseLeftOver(left, tensors, embedding);
  return network;
}

/** A tensor that the forward pass would not read is part of another model. Only the head that repeats the embedding may be there. */
function refuseLeftOver(
  left: ReadonlySet<string>,
  tensors: ReadonlyMap<string, NamedTensor>,
  embedding: Float32Array,
): void {
  for (const name of left) {
    const repeated = name === "lm_head.weight" && tensors.get(name)!.data.every((value, i) => value === embedding[i]);
    if (!repeated) throw invalidModel("model.safetensors", `tensor ${name} is not part of this model`);
  }
}

/** A copy of the [out, in] matrix as [in, out] in the kernel's memory. */
function transposed(kernel: Kernel, matrix: Float32Array, out: number, inputs: number): Tensor {
  const tensor = kernel.allocate(out * inputs);
  for (let o = 0; o < out; o++) for (let i = 0; i < inputs; i++) tensor.data[i * out + o] = matrix[o * inputs + i]!;
  return tensor;
}
