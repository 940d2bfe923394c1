import { gemmCode } from "./gemm-code.js";
import { rowKernelCode } from "./row-kernel-code.js";
import { assembleModule } from "./wasm-code.js";

/** Start of a float array in the kernel's memory, in bytes. */
type Pointer = number;

/** Functions in WebAssembly; pointers in bytes, counts and strides in floats. */
interface KernelFunctions {
  /** C[m,n] (+)= A[m,k]·B[k,n]; n a multiple of 4. See gemm-code.ts. */
  gemm(
    c: Pointer,
    a: Pointer,
    b: Pointer,
    m: number,
    n: number,
    k: number,
    strideA: number,
    strideB: number,
    strideC: number,
    accumulate: 0 | 1,
  ): void;
  /** row ← factor · softmax(scale · row). This and the rest: row-kernel-code.ts, counts a multiple of 4. */
  softmax(row: Pointer, count: number, scale: number, factor: number): void;
  /** d ← scale · p · (d − Σ p·d) */
  softmaxBack(p: Pointer, d: Pointer, count: number, scale: number): void;
  /** logistic ← 1/(1 + e^−gate), product ← gate · logistic · up */
  silu(gate: Pointer, up: Pointer, logistic: Pointer, product: Pointer, count: number): void;
  /** The gradients of `silu`. */
  siluBack(
    gate: Pointer,
    up: Pointer,
    logistic: Pointer,
    dProduct: Pointer,
    dGate: Pointer,
    dUp: Pointer,
    count: number,
  ): void;
}

// Node has these; TypeScript declares them only with the browser's library.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
  }
  class Memory {
    constructor(size: { initial: number; maximum: number });
    readonly buffer: ArrayBuffer;
  }
  class Instance {
    constructor(module: Module, imports: { e: { m: Memory } });
    readonly exports: KernelFunctions;
  }
}

const PAGE_BYTES = 65_536;
let compiled: WebAssembly.Module | undefined;

/** A float array that the kernel can read and write. */
export interface Tensor {
  readonly at: Pointer;
  readonly data: Float32Array;
}

/** The matrix kernel with a memory of its own, sized once: views of it never go stale. */
export interface Kernel extends KernelFunctions {
  /** Reserves `length` floats, 16-byte aligned, filled with zeros. Throws RangeError when the memory is used up. */
  allocate(length: number): Tensor;
}

/** Compiles the kernel on first use (a few milliseconds) and gives it room for `floats` floats plus alignment. */
export function createKernel(floats: number): Kernel {
  compiled ??= new WebAssembly.Module(assembleModule([gemmCode(), ...rowKernelCode()]));
  const pages = Math.ceil((floats * 4 + PAGE_BYTES) / PAGE_BYTES);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const instance = new WebAssembly.Instance(compiled, { e: { m: memory } });
  let used = 0;
  return {
    ...instance.exports,
    allocate(length) {
      const at = used;
      const end = at + length * 4;
      if (end > memory.buffer.byteLength)
        throw new RangeError(`kernel memory: ${end} bytes wanted, ${memory.buffer.byteLength} there`);
      used = Math.ceil(end / 16) * 16;
      return { at, data: new Float32Array(memory.buffer, at, length) };
    },
  };
}
