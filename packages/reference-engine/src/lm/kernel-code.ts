/**
 * Writes the WebAssembly module behind every matrix product of the model: one function, `gemm`, in SIMD f32.
 *
 *   C[M,N] (+)= A[M,K]·B[K,N]     row-major, N a multiple of 4, pointers in bytes, row strides in floats
 *
 * Each element of C is one running sum over k = 0 … K−1, multiply then add, rounded to f32 at each step (plain SIMD has no fused multiply-add).
 * The tile a row falls into does not change that order, so a row computed alone equals the same row in a batch bit for bit, on every CPU.
 */

const I32 = 0x7f;
const V128 = 0x7b;

type Code = readonly number[];

/** Unsigned LEB128. */
function leb(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    out.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return out;
}

/** An i32 constant that fits in 6 bits of signed LEB128, or two bytes up to 8191. */
function constant(value: number): number[] {
  return value < 64 ? [0x41, value] : [0x41, (value & 0x7f) | 0x80, value >> 7];
}

const section = (id: number, body: Code): number[] => [id, ...leb(body.length), ...body];
const name = (text: string): number[] => [...leb(text.length), ...new TextEncoder().encode(text)];
const simd = (opcode: number): number[] => [0xfd, ...leb(opcode)];

const PARAMETERS = ["C", "A", "B", "M", "N", "K", "strideA", "strideB", "strideC", "accumulate"] as const;
const SCALARS = ["m", "n", "k", "aRow", "bColumn", "cRow", "a", "b", "c"] as const;
const VECTORS = [
  ...Array.from({ length: 16 }, (_, i) => `sum${i}`),
  ...Array.from({ length: 4 }, (_, i) => `right${i}`),
  "left",
];
const SLOT = new Map<string, number>([...PARAMETERS, ...SCALARS, ...VECTORS].map((local, index) => [local, index]));

const slot = (local: string): number[] => leb(SLOT.get(local)!);
const get = (local: string): number[] => [0x20, ...slot(local)];
const set = (local: string, ...value: Code[]): number[] => [...value.flat(), 0x21, ...slot(local)];
const add = (left: Code, right: Code): number[] => [...left, ...right, 0x6a];
const multiply = (left: Code, right: Code): number[] => [...left, ...right, 0x6c];
const advance = (local: string, bytes: Code): number[] => set(local, add(get(local), bytes));
const shrink = (local: string, by: number): number[] => set(local, get(local), constant(by), [0x6b]);
const load = (opcode: number, align: number, address: Code, offset: number): number[] => [
  ...address,
  ...simd(opcode),
  align,
  ...leb(offset),
];
const loadVector = (address: Code, offset: number): number[] => load(0x00, 2, address, offset);
const loadSplat = (address: Code): number[] => load(0x09, 2, address, 0);
const storeVector = (address: Code, offset: number, value: Code): number[] => [
  ...address,
  ...value,
  ...simd(0x0b),
  2,
  ...leb(offset),
];
const addVectors = (left: Code, right: Code): number[] => [...left, ...right, ...simd(0xe4)];
const multiplyVectors = (left: Code, right: Code): number[] => [...left, ...right, ...simd(0xe6)];
const zeroVector: number[] = [...simd(0x0c), ...Array<number>(16).fill(0)];

/** Repeats `body` while `local` ≥ `least` (signed). */
function whileAtLeast(local: string, least: number, body: Code): number[] {
  const leave = [...get(local), ...constant(least), 0x48, 0x0d, 1];
  return [0x02, 0x40, 0x03, 0x40, ...leave, ...body, 0x0c, 0, 0x0b, 0x0b];
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** One register tile of `rows` × 4·`columns` floats: load or clear the sums, run over k, store. */
function tile(rows: number, columns: number): number[] {
  const rowAddress = (base: string, row: number, stride: string) =>
    row === 0 ? get(base) : add(get(base), multiply(constant(row), get(stride)));
  const cells = range(rows).flatMap((row) => range(columns).map((column) => ({ row, column })));
  const sum = (cell: { row: number; column: number }) => `sum${4 * cell.row + cell.column}`;
  const start = cells.flatMap((cell) => {
    const old = loadVector(rowAddress("c", cell.row, "strideC"), 16 * cell.column);
    return set(sum(cell), [...get("accumulate"), 0x04, V128, ...old, 0x05, ...zeroVector, 0x0b]);
  });
  const step = [
    ...range(columns).flatMap((column) => set(`right${column}`, loadVector(get("b"), 16 * column))),
    ...range(rows).flatMap((row) => [
      ...set("left", loadSplat(rowAddress("a", row, "strideA"))),
      ...range(columns).flatMap((column) => {
        const target = sum({ row, column });
        return set(target, addVectors(get(target), multiplyVectors(get("left"), get(`right${column}`))));
      }),
    ]),
    ...advance("a", constant(4)),
    ...advance("b", get("strideB")),
    ...shrink("k", 1),
  ];
  const finish = cells.flatMap((cell) =>
    storeVector(rowAddress("c", cell.row, "strideC"), 16 * cell.column, get(sum(cell))),
  );
  const begin = [...set("a", get("aRow")), ...set("b", get("bColumn")), ...set("k", get("K"))];
  return [...start, ...begin, ...whileAtLeast("k", 1, step), ...finish];
}

/** All columns of one band of rows, in tiles of 16, 8 and 4 floats. */
function band(rows: number): number[] {
  const begin = [...set("n", get("N")), ...set("c", get("cRow")), ...set("bColumn", get("B"))];
  const sweeps = [4, 2, 1].flatMap((columns) =>
    whileAtLeast("n", 4 * columns, [
      ...tile(rows, columns),
      ...advance("c", constant(16 * columns)),
      ...advance("bColumn", constant(16 * columns)),
      ...shrink("n", 4 * columns),
    ]),
  );
  return [...begin, ...sweeps];
}

function gemmBody(): number[] {
  const toBytes = ["strideA", "strideB", "strideC"].flatMap((stride) => set(stride, get(stride), constant(2), [0x74]));
  const begin = [...set("m", get("M")), ...set("aRow", get("A")), ...set("cRow", get("C"))];
  const bands = [4, 1].flatMap((rows) =>
    whileAtLeast("m", rows, [
      ...band(rows),
      ...advance("aRow", multiply(constant(rows), get("strideA"))),
      ...advance("cRow", multiply(constant(rows), get("strideC"))),
      ...shrink("m", rows),
    ]),
  );
  const locals = [2, ...leb(SCALARS.length), I32, ...leb(VECTORS.length), V128];
  return [...locals, ...toBytes, ...begin, ...bands, 0x0b];
}

/** The bytes of the module: imports memory `e.m`, exports `gemm(C, A, B, M, N, K, strideA, strideB, strideC, accumulate)`. About 3 kB. */
export function gemmModuleBytes(): Uint8Array<ArrayBuffer> {
  const body = gemmBody();
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, PARAMETERS.length, ...PARAMETERS.map(() => I32), 0]),
    ...section(2, [1, ...name("e"), ...name("m"), 0x02, 0x00, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name("gemm"), 0x00, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}
