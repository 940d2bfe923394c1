import { type Code, chooseVector, defineFunction, type FunctionCode, f32x4, i32, type Locals } from "./wasm-code.js";

/**
 * Writes the WebAssembly function behind every matrix product of the model: `gemm`, in SIMD f32.
 *
 *   C[M,N] (+)= A[M,K]·B[K,N]     row-major, N a multiple of 4, pointers in bytes, row strides in floats
 *
 * Each element of C is one running sum over k = 0 … K−1, multiply then add, rounded to f32 at each step (plain SIMD has no fused multiply-add).
 * The tile a row falls into does not change that order, so a row computed alone equals the same row in a batch bit for bit, on every CPU.
 */

const PARAMETERS = ["C", "A", "B", "M", "N", "K", "strideA", "strideB", "strideC", "accumulate"] as const;
const SCALARS = ["m", "n", "k", "aRow", "bColumn", "cRow", "a", "b", "c", "row1", "row2", "row3"] as const;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const VECTORS = [...range(8).map((i) => `sum${i}`), ...range(2).map((i) => `right${i}`), "left"];

/** One register tile of `rows` × 4·`columns` floats: load or clear the sums, run over k, store. */
function tile({ get, set, advance, whileAtLeast }: Locals, rows: number, columns: number): number[] {
  const rowAddress = (base: string, row: number, stride: string) =>
    row === 0 ? get(base) : i32.add(get(base), i32.multiply(i32.constant(row), get(stride)));
  const cells = range(rows).flatMap((row) =>
    range(columns).map((column) => ({ row, column, sum: `sum${2 * row + column}` })),
  );
  const start = cells.flatMap(({ row, column, sum }) => {
    const old = f32x4.load(rowAddress("c", row, "strideC"), 16 * column);
    return set(sum, chooseVector(get("accumulate"), old, f32x4.zero));
  });
  const step = [
    ...range(columns).flatMap((column) => set(`right${column}`, f32x4.load(get("b"), 16 * column))),
    ...range(rows).flatMap((row) => [
      ...set("left", f32x4.loadSplat(row === 0 ? get("a") : i32.add(get("a"), get(`row${row}`)))),
      ...cells
        .filter((cell) => cell.row === row)
        .flatMap(({ column, sum }) =>
          set(sum, f32x4.add(get(sum), f32x4.multiply(get("left"), get(`right${column}`)))),
        ),
    ]),
    ...advance("a", i32.constant(4)),
    ...advance("b", get("strideB")),
    ...set("k", i32.subtract(get("k"), i32.constant(1))),
  ];
  const finish = cells.flatMap(({ row, column, sum }) =>
    f32x4.store(rowAddress("c", row, "strideC"), get(sum), 16 * column),
  );
  const begin = [...set("a", get("aRow")), ...set("b", get("bColumn")), ...set("k", get("K"))];
  return [...start, ...begin, ...whileAtLeast("k", 1, step), ...finish];
}

/** All columns of one band of rows, in tiles of 8 and 4 floats: 4 × 8 leaves all sums in registers where there are 16, 4 × 16 was a third slower. */
function band(locals: Locals, rows: number): number[] {
  const { get, set, advance, whileAtLeast } = locals;
  const begin = [...set("n", get("N")), ...set("c", get("cRow")), ...set("bColumn", get("B"))];
  const sweeps = [2, 1].flatMap((columns) =>
    whileAtLeast("n", 4 * columns, [
      ...tile(locals, rows, columns),
      ...advance("c", i32.constant(16 * columns)),
      ...advance("bColumn", i32.constant(16 * columns)),
      ...set("n", i32.subtract(get("n"), i32.constant(4 * columns))),
    ]),
  );
  return [...begin, ...sweeps];
}

function gemmBody(locals: Locals): Code {
  const { get, set, advance, whileAtLeast } = locals;
  const rowOffsets = range(4)
    .slice(1)
    .flatMap((row) => set(`row${row}`, i32.multiply(i32.constant(row), get("strideA"))));
  const toBytes = ["strideA", "strideB", "strideC"].flatMap((stride) =>
    set(stride, i32.shiftLeft(get(stride), i32.constant(2))),
  );
  const begin = [...set("m", get("M")), ...set("aRow", get("A")), ...set("cRow", get("C"))];
  const bands = [4, 1].flatMap((rows) =>
    whileAtLeast("m", rows, [
      ...band(locals, rows),
      ...advance("aRow", i32.multiply(i32.constant(rows), get("strideA"))),
      ...advance("cRow", i32.multiply(i32.constant(rows), get("strideC"))),
      ...set("m", i32.subtract(get("m"), i32.constant(rows))),
    ]),
  );
  return [...toBytes, ...rowOffsets, ...begin, ...bands];
}

/** The matrix product; parameters C, A, B, M, N, K, strideA, strideB, strideC, accumulate, all i32. */
export function gemmCode(): FunctionCode {
  const scalars = SCALARS.map((local) => [local, "i32"] as const);
  const vectors = VECTORS.map((local) => [local, "v128"] as const);
  return defineFunction(
    "gemm",
    PARAMETERS.map((local) => [local, "i32"] as const),
    [...scalars, ...vectors],
    gemmBody,
  );
}
