import type { Kernel, Tensor } from "../kernel.js";
import { transpose } from "./parameters.js";

/** Scratch for the attention of one head over one episode of at most `rowsMax` tokens. */
export interface AttentionScratch {
  readonly packed: Tensor;
  readonly dScores: Tensor;
  readonly square: Tensor;
}

export function allocateAttentionScratch(kernel: Kernel, rowsMax: number, headSize: number): AttentionScratch {
  return {
    packed: kernel.allocate(headSize * rowsMax),
    dScores: kernel.allocate(rowsMax * rowsMax),
    square: kernel.allocate(rowsMax * rowsMax),
  };
}

/** Where one head of one episode lies in arrays of [tokens, width] floats. */
export interface HeadView {
  /** Tokens of the episode. */
  readonly rows: number;
  /** First float of the head in the first row. */
  readonly offset: number;
  /** Floats a row. */
  readonly width: number;
  readonly headSize: number;
}

const BLOCK_ROWS = 48;
/** Score of a key that a query must not see: its weight comes out as 0, next to any real score. */
const UNSEEN = -1e30;

/** Key count as the kernel wants it. */
export const paddedRows = (rows: number): number => Math.ceil(rows / 4) * 4;

/** Blocks of query rows with the number of keys that any of them sees, padded. */
function* causalBlocks(rows: number): Generator<{ from: number; count: number; keys: number }> {
  for (let from = 0; from < rows; from += BLOCK_ROWS) {
    const count = Math.min(BLOCK_ROWS, rows - from);
    yield { from, count, keys: paddedRows(from + count) };
  }
}

const at = (tensor: Tensor, index: number): number => tensor.at + 4 * index;

/** out = softmax(q·kᵀ/√headSize)·v, causal. `probabilities` [rows, padded rows] keeps the weights for the way back. */
export function attend(
  kernel: Kernel,
  scratch: AttentionScratch,
  view: HeadView,
  { q, k, v, out, probabilities }: { q: Tensor; k: Tensor; v: Tensor; out: Tensor; probabilities: Tensor },
): void {
  const { rows, offset, width, headSize } = view;
  const keys = paddedRows(rows);
  const scale = 1 / Math.sqrt(headSize);
  transpose(k.data.subarray(offset), rows, headSize, width, scratch.packed.data, keys);
  for (const block of causalBlocks(rows)) {
    const p = at(probabilities, block.from * keys);
    kernel.gemm(
      p,
      at(q, offset + block.from * width),
      scratch.packed.at,
      block.count,
      block.keys,
      headSize,
      width,
      keys,
      keys,
      0,
    );
    for (let i = block.from; i < block.from + block.count; i++) {
      const row = i * keys;
      probabilities.data.fill(UNSEEN, row + i + 1, row + paddedRows(i + 1));
      kernel.softmax(at(probabilities, row), paddedRows(i + 1), scale, 1);
      probabilities.data.fill(0, row + i + 1, row + keys);
    }
    const visible = block.from + block.count;
    kernel.gemm(
      at(out, offset + block.from * width),
      p,
      at(v, offset),
      block.count,
      headSize,
      visible,
      keys,
      width,
      width,
      0,
    );
  }
}

/** Gradients of `attend`: from `dOut` to dq, dk, dv (overwritten). */
export function attendBack(
  kernel: Kernel,
  scratch: AttentionScratch,
  view: HeadView,
  tensors: { q: Tensor; k: Tensor; v: Tensor; probabilities: Tensor; dOut: Tensor; dq: Tensor; dk: Tensor; dv: Tensor },
): void {
  const { rows, offset, width, headSize } = view;
  const { q, k, v, probabilities, dOut, dq, dk, dv } = tensors;
  const { packed, dScores, square } = scratch;
  const keys = paddedRows(rows);
  const scale = 1 / Math.sqrt(headSize);
  transpose(v.data.subarray(offset), rows, headSize, width, packed.data, keys);
  for (const block of causalBlocks(rows)) {
    const d = at(dScores, block.from * keys);
    kernel.gemm(
      d,
      at(dOut, offset + block.from * width),
      packed.at,
      block.count,
      block.keys,
      headSize,
      width,
      keys,
      keys,
      0,
    );
    for (let i = block.from; i < block.from + block.count; i++) {
      const row = i * keys;
      kernel.softmaxBack(at(probabilities, row), at(dScores, row), paddedRows(i + 1), scale);
      dScores.data.fill(0, row + i + 1, row + keys);
    }
    const visible = block.from + block.count;
    kernel.gemm(
      at(dq, offset + block.from * width),
      d,
      at(k, offset),
      block.count,
      headSize,
      visible,
      keys,
      width,
      width,
      0,
    );
  }
  transpose(dScores.data, rows, rows, keys, square.data, keys);
  gatherFromLater(kernel, view, square, q, dk);
  transpose(probabilities.data, rows, rows, keys, square.data, keys);
  gatherFromLater(kernel, view, square, dOut, dv);
}

/** to[j] = Σ over i ≥ j of weights[j, i]·from[i]: keys and values collect from the queries that saw them. */
function gatherFromLater(kernel: Kernel, view: HeadView, weights: Tensor, from: Tensor, to: Tensor): void {
  const { rows, offset, width, headSize } = view;
  const keys = paddedRows(rows);
  for (const { from: first, count } of causalBlocks(rows)) {
    const a = at(weights, first * keys + first);
    const b = at(from, offset + first * width);
    kernel.gemm(at(to, offset + first * width), a, b, count, headSize, rows - first, keys, width, width, 0);
  }
}
