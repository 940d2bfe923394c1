import type { ModelConfig } from "../config.js";
import { log } from "../exact-math.js";
import { ropeTable } from "../forward.js";
import { createKernel, type Kernel, type Tensor } from "../kernel.js";
import {
  type AttentionScratch,
  allocateAttentionScratch,
  attend,
  attendBack,
  type HeadView,
  paddedRows,
} from "./attention.js";
import type { Episode } from "./episode.js";
import {
  allocateParameters,
  type Parameter,
  type Parameters,
  parameterCount,
  transpose,
  transposeAll,
} from "./parameters.js";

/** Bounds of one batch; memory is reserved for them once. */
export interface BatchLimits {
  readonly episodes: number;
  /** Tokens of one episode. */
  readonly tokensMax: number;
}

/** A sampled token of a batch: position `index` of episode `episode`. */
export interface TargetToken {
  readonly episode: number;
  readonly index: number;
  /** log π(token | tokens before it) under the parameters as they are. */
  readonly logprob: number;
}

/** What a token adds to the loss, and dLoss/dlogprob. */
export type TokenLoss = (token: TargetToken) => { readonly loss: number; readonly slope: number };

/** What a layer keeps of the way forward for the way back; rows are the tokens of the batch. */
interface LayerTrace {
  readonly entering: Tensor;
  readonly normed: Tensor;
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly probabilities: Tensor;
  readonly attended: Tensor;
  readonly middle: Tensor;
  readonly mlpNormed: Tensor;
  readonly gate: Tensor;
  /** 1 / (1 + e^−gate) */
  readonly logistic: Tensor;
  readonly up: Tensor;
  readonly product: Tensor;
}

/** Arrays that one layer after the other uses on the way back. */
interface Scratch {
  readonly attention: AttentionScratch;
  readonly dResidual: Tensor;
  readonly dNormed: Tensor;
  readonly dAttended: Tensor;
  readonly dq: Tensor;
  readonly dk: Tensor;
  readonly dv: Tensor;
  readonly dGate: Tensor;
  readonly dUp: Tensor;
  readonly dProduct: Tensor;
  /** dYᵀ for the gradient of a matrix. */
  readonly turned: Tensor;
  readonly picked: Tensor;
  readonly pickedNormed: Tensor;
  readonly logits: Tensor;
  readonly dPicked: Tensor;
}

/** Losses and gradients of a small Llama, written out by hand; the optimizer is separate. Everything is reserved once and reused. */
export class Trainer {
  readonly parameters: Parameters;
  readonly #config: ModelConfig;
  readonly #kernel: Kernel;
  readonly #limits: BatchLimits;
  readonly #rope: Float32Array;
  readonly #traces: LayerTrace[];
  readonly #leaving: Tensor;
  readonly #scratch: Scratch;
  #ids = new Int32Array(0);
  #episodes: { start: number; rows: number }[] = [];
  /** Rows whose next token was sampled, and that token. */
  #targets: { row: number; id: number; episode: number; index: number }[] = [];

  constructor(config: ModelConfig, limits: BatchLimits) {
    this.#config = config;
    this.#limits = limits;
    this.#kernel = createKernel(3 * parameterCount(config) + traceFloats(config, limits));
    this.parameters = allocateParameters(config, this.#kernel);
    this.#rope = ropeTable(config, limits.tokensMax);
    const rows = limits.episodes * limits.tokensMax;
    this.#traces = Array.from({ length: config.layers }, () => allocateTrace(this.#kernel, config, limits));
    this.#leaving = this.#kernel.allocate(rows * config.hiddenSize);
    this.#scratch = allocateScratch(this.#kernel, config, limits);
  }

  /** Mean −log π over the sampled tokens of the batch; leaves its gradients in `parameters.gradients`. */
  lossAndGradients(batch: readonly Episode[]): number {
    this.parameters.gradients.fill(0);
    return this.#pass(batch, () => this.#crossEntropy());
  }

  /** Sum of a loss of its own for each sampled token; adds its gradients to `parameters.gradients`. The caller clears them before the first batch of a step. */
  addLossAndGradients(batch: readonly Episode[], tokenLoss: TokenLoss): number {
    return this.#pass(batch, () => this.#tokenLosses(tokenLoss));
  }

  /** Forward, the loss at the head, and all the way back. `lossAtHead` turns the logits into their gradients. */
  #pass(batch: readonly Episode[], lossAtHead: () => number): number {
    transposeAll(this.parameters);
    this.#begin(batch);
    for (let layer = 0; layer < this.#config.layers; layer++) {
      this.#attentionForward(layer);
      this.#mlpForward(layer);
    }
    const loss = this.#head(lossAtHead);
    for (let layer = this.#config.layers - 1; layer >= 0; layer--) {
      this.#mlpBack(layer);
      this.#attentionBack(layer);
    }
    this.#embeddingBack();
    return loss;
  }

  get #rows(): number {
    return this.#ids.length;
  }

  /** Residual stream that leaves layer `index`. */
  #after(index: number): Tensor {
    return this.#traces[index + 1]?.entering ?? this.#leaving;
  }

  #begin(batch: readonly Episode[]): void {
    if (batch.length > this.#limits.episodes)
      throw new RangeError(`${batch.length} episodes, room for ${this.#limits.episodes}`);
    this.#episodes = [];
    this.#targets = [];
    let start = 0;
    for (const [episode, { ids, sampled }] of batch.entries()) {
      if (ids.length > this.#limits.tokensMax)
        throw new RangeError(`episode of ${ids.length} tokens, room for ${this.#limits.tokensMax}`);
      this.#episodes.push({ start, rows: ids.length });
      for (let i = 1; i < ids.length; i++)
        if (sampled[i]) this.#targets.push({ row: start + i - 1, id: ids[i]!, episode, index: i });
      start += ids.length;
    }
    this.#ids = Int32Array.from(batch.flatMap(({ ids }) => Array.from(ids)));
    const size = this.#config.hiddenSize;
    const table = this.parameters.embedding.value.data;
    const x = this.#traces[0]!.entering.data;
    this.#ids.forEach((id, row) => {
      x.set(table.subarray(id * size, (id + 1) * size), row * size);
    });
  }

  #attentionForward(index: number): void {
    const layer = this.parameters.layers[index]!;
    const trace = this.#traces[index]!;
    const rows = this.#rows;
    const size = this.#config.hiddenSize;
    normRows(trace.entering.data, layer.inputNorm.value.data, trace.normed.data, rows, this.#config);
    this.#linear(trace.normed, layer.query, trace.q);
    this.#linear(trace.normed, layer.key, trace.k);
    this.#linear(trace.normed, layer.value, trace.v);
    this.#rotate(trace.q.data, 1);
    this.#rotate(trace.k.data, 1);
    for (const { view, probabilities } of this.#heads(trace)) {
      attend(this.#kernel, this.#scratch.attention, view, { ...trace, out: trace.attended, probabilities });
    }
    trace.middle.data.set(trace.entering.data.subarray(0, rows * size));
    this.#linear(trace.attended, layer.output, trace.middle, 1);
  }

  #mlpForward(index: number): void {
    const layer = this.parameters.layers[index]!;
    const trace = this.#traces[index]!;
    const rows = this.#rows;
    normRows(trace.middle.data, layer.mlpNorm.value.data, trace.mlpNormed.data, rows, this.#config);
    this.#linear(trace.mlpNormed, layer.gate, trace.gate);
    this.#linear(trace.mlpNormed, layer.up, trace.up);
    const { gate, up, logistic, product } = trace;
    this.#kernel.silu(gate.at, up.at, logistic.at, product.at, rows * this.#config.intermediateSize);
    const after = this.#after(index);
    after.data.set(trace.middle.data.subarray(0, rows * this.#config.hiddenSize));
    this.#linear(trace.product, layer.down, after, 1);
  }

  /** Logits, loss and their gradients, for the rows that predict sampled tokens only. */
  #head(lossAtHead: () => number): number {
    const { embedding, finalNorm } = this.parameters;
    const { picked, pickedNormed, logits, dPicked, dResidual } = this.#scratch;
    const { hiddenSize: size } = this.#config;
    const count = this.#targets.length;
    this.#targets.forEach(({ row }, i) => {
      picked.data.set(this.#leaving.data.subarray(row * size, (row + 1) * size), i * size);
    });
    normRows(picked.data, finalNorm.value.data, pickedNormed.data, count, this.#config);
    this.#linear(pickedNormed, embedding, logits, 0, count);
    const loss = lossAtHead();
    this.#linearBack(pickedNormed, embedding, logits, dPicked, 0, count);
    const dNormed = this.#scratch.dNormed;
    dNormed.data.fill(0, 0, count * size);
    normRowsBack(picked.data, finalNorm, dPicked.data, dNormed.data, count, this.#config);
    dResidual.data.fill(0, 0, this.#rows * size);
    this.#targets.forEach(({ row }, i) => {
      dResidual.data.set(dNormed.data.subarray(i * size, (i + 1) * size), row * size);
    });
    return loss;
  }

  /** Mean −log π of the targets, and its gradients in the place of the logits. */
  #crossEntropy(): number {
    const { logits } = this.#scratch;
    const { vocabSize } = this.#config;
    const count = this.#targets.length;
    let loss = 0;
    this.#targets.forEach(({ id }, i) => {
      const row = i * vocabSize;
      this.#kernel.softmax(logits.at + 4 * row, vocabSize, 1, 1 / count);
      loss -= log(logits.data[row + id]! * count);
      logits.data[row + id]! -= 1 / count;
    });
    return loss / count;
  }

  /** Σ of the tokens' own losses, and its gradients in the place of the logits. */
  #tokenLosses(tokenLoss: TokenLoss): number {
    const { logits } = this.#scratch;
    const { vocabSize } = this.#config;
    let total = 0;
    this.#targets.forEach(({ id, episode, index }, i) => {
      const row = i * vocabSize;
      this.#kernel.softmax(logits.at + 4 * row, vocabSize, 1, 1);
      const { loss, slope } = tokenLoss({ episode, index, logprob: log(logits.data[row + id]!) });
      for (let j = row; j < row + vocabSize; j++) logits.data[j]! *= -slope;
      logits.data[row + id]! += slope;
      total += loss;
    });
    return total;
  }

  #mlpBack(index: number): void {
    const layer = this.parameters.layers[index]!;
    const trace = this.#traces[index]!;
    const { dResidual, dProduct, dGate, dUp, dNormed } = this.#scratch;
    this.#linearBack(trace.product, layer.down, dResidual, dProduct);
    const { gate, up, logistic } = trace;
    const count = this.#rows * this.#config.intermediateSize;
    this.#kernel.siluBack(gate.at, up.at, logistic.at, dProduct.at, dGate.at, dUp.at, count);
    this.#linearBack(trace.mlpNormed, layer.gate, dGate, dNormed);
    this.#linearBack(trace.mlpNormed, layer.up, dUp, dNormed, 1);
    normRowsBack(trace.middle.data, layer.mlpNorm, dNormed.data, dResidual.data, this.#rows, this.#config);
  }

  #attentionBack(index: number): void {
    const layer = this.parameters.layers[index]!;
    const trace = this.#traces[index]!;
    const { dResidual, dAttended, dq, dk, dv, dNormed, attention } = this.#scratch;
    this.#linearBack(trace.attended, layer.output, dResidual, dAttended);
    for (const { view, probabilities } of this.#heads(trace)) {
      attendBack(this.#kernel, attention, view, { ...trace, probabilities, dOut: dAttended, dq, dk, dv });
    }
    this.#rotate(dq.data, -1);
    this.#rotate(dk.data, -1);
    this.#linearBack(trace.normed, layer.query, dq, dNormed);
    this.#linearBack(trace.normed, layer.key, dk, dNormed, 1);
    this.#linearBack(trace.normed, layer.value, dv, dNormed, 1);
    normRowsBack(trace.entering.data, layer.inputNorm, dNormed.data, dResidual.data, this.#rows, this.#config);
  }

  #embeddingBack(): void {
    const size = this.#config.hiddenSize;
    const gradient = this.parameters.embedding.gradient.data;
    const d = this.#scratch.dResidual.data;
    this.#ids.forEach((id, row) => {
      for (let i = 0; i < size; i++) gradient[id * size + i]! += d[row * size + i]!;
    });
  }

  /** y (+)= x·Wᵀ */
  #linear(x: Tensor, { shape, transposed }: Parameter, y: Tensor, accumulate: 0 | 1 = 0, rows = this.#rows): void {
    const [out, inputs] = shape as [number, number];
    this.#kernel.gemm(y.at, x.at, transposed!.at, rows, out, inputs, inputs, out, out, accumulate);
  }

  /** dx (+)= dy·W, and dW += dyᵀ·x */
  #linearBack(
    x: Tensor,
    { shape, value, gradient }: Parameter,
    dy: Tensor,
    dx: Tensor,
    accumulate: 0 | 1 = 0,
    rows = this.#rows,
  ): void {
    const [out, inputs] = shape as [number, number];
    const { turned } = this.#scratch;
    this.#kernel.gemm(dx.at, dy.at, value.at, rows, inputs, out, out, inputs, inputs, accumulate);
    transpose(dy.data, rows, out, out, turned.data, rows);
    this.#kernel.gemm(gradient.at, turned.at, x.at, out, inputs, rows, rows, inputs, inputs, 1);
  }

  *#heads(trace: LayerTrace): Generator<{ view: HeadView; probabilities: Tensor }> {
    const { heads, headSize, hiddenSize: width } = this.#config;
    const square = paddedRows(this.#limits.tokensMax) ** 2;
    for (const [episode, { start, rows }] of this.#episodes.entries()) {
      for (let head = 0; head < heads; head++) {
        const from = (episode * heads + head) * square;
        const probabilities = {
          at: trace.probabilities.at + 4 * from,
          data: trace.probabilities.data.subarray(from, from + square),
        };
        yield { view: { rows, offset: start * width + head * headSize, width, headSize }, probabilities };
      }
    }
  }

  /** Rotary positions, forwards (1) or their gradient (−1). */
  #rotate(data: Float32Array, direction: 1 | -1): void {
    const { heads, headSize, hiddenSize: size } = this.#config;
    const half = headSize / 2;
    for (const { start, rows } of this.#episodes) {
      for (let position = 0; position < rows; position++) {
        for (let head = 0; head < heads; head++) {
          const at = (start + position) * size + head * headSize;
          for (let i = 0; i < half; i++) {
            const cos = this.#rope[position * headSize + i]!;
            const sin = direction * this.#rope[position * headSize + half + i]!;
            const a = data[at + i]!;
            const b = data[at + half + i]!;
            data[at + i] = a * cos - b * sin;
            data[at + half + i] = b * cos + a * sin;
          }
        }
      }
    }
  }
}

function normRows(x: Float32Array, weight: Float32Array, out: Float32Array, rows: number, config: ModelConfig): void {
  const size = config.hiddenSize;
  for (let at = 0; at < rows * size; at += size) {
    const scale = inverseNorm(x, at, config);
    for (let i = 0; i < size; i++) out[at + i] = x[at + i]! * scale * weight[i]!;
  }
}

function inverseNorm(x: Float32Array, at: number, { hiddenSize, normEpsilon }: ModelConfig): number {
  let squares = 0;
  for (let i = at; i < at + hiddenSize; i++) squares += x[i]! * x[i]!;
  return 1 / Math.sqrt(squares / hiddenSize + normEpsilon);
}

/** dx += the gradient through the norm; the norm's own gradient is added to the parameter. */
function normRowsBack(
  x: Float32Array,
  norm: Parameter,
  dy: Float32Array,
  dx: Float32Array,
  rows: number,
  config: ModelConfig,
): void {
  const size = config.hiddenSize;
  const weight = norm.value.data;
  const dWeight = norm.gradient.data;
  for (let at = 0; at < rows * size; at += size) {
    const scale = inverseNorm(x, at, config);
    let along = 0;
    for (let i = 0; i < size; i++) along += dy[at + i]! * weight[i]! * x[at + i]!;
    const pull = (along * scale * scale) / size;
    for (let i = 0; i < size; i++) {
      dWeight[i]! += dy[at + i]! * x[at + i]! * scale;
      dx[at + i]! += scale * (dy[at + i]! * weight[i]! - x[at + i]! * pull);
    }
  }
}

function traceFloats(config: ModelConfig, { episodes, tokensMax }: BatchLimits): number {
  const { hiddenSize: d, intermediateSize: inner, vocabSize, layers, heads, headSize } = config;
  const rows = episodes * tokensMax;
  const square = paddedRows(tokensMax) ** 2;
  const trace = rows * (8 * d + 4 * inner) + episodes * heads * square;
  const scratch =
    rows * (10 * d + 3 * inner + vocabSize + Math.max(inner, vocabSize)) +
    2 * square +
    headSize * paddedRows(tokensMax);
  return layers * trace + scratch + 4096;
}

function allocateTrace(kernel: Kernel, config: ModelConfig, { episodes, tokensMax }: BatchLimits): LayerTrace {
  const rows = (width: number) => kernel.allocate(episodes * tokensMax * width);
  const { hiddenSize: d, intermediateSize: inner } = config;
  return {
    entering: rows(d),
    normed: rows(d),
    q: rows(d),
    k: rows(d),
    v: rows(d),
    probabilities: kernel.allocate(episodes * config.heads * paddedRows(tokensMax) ** 2),
    attended: rows(d),
    middle: rows(d),
    mlpNormed: rows(d),
    gate: rows(inner),
    logistic: rows(inner),
    up: rows(inner),
    product: rows(inner),
  };
}

function allocateScratch(kernel: Kernel, config: ModelConfig, { episodes, tokensMax }: BatchLimits): Scratch {
  const rows = (width: number) => kernel.allocate(episodes * tokensMax * width);
  const { hiddenSize: d, intermediateSize: inner, vocabSize } = config;
  return {
    attention: allocateAttentionScratch(kernel, paddedRows(tokensMax), config.headSize),
    dResidual: rows(d),
    dNormed: rows(d),
    dAttended: rows(d),
    dq: rows(d),
    dk: rows(d),
    dv: rows(d),
    dGate: rows(inner),
    dUp: rows(inner),
    dProduct: rows(inner),
    turned: rows(Math.max(inner, vocabSize)),
    picked: rows(d),
    pickedNormed: rows(d),
    logits: rows(vocabSize),
    dPicked: rows(d),
  };
}
