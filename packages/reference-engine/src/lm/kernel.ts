import { gemmModuleBytes } from "./kernel-code.js";

/** Start of a float array in the kernel's memory, in bytes. */
export type Pointer = number;

type Gemm = (
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
) => void;

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
    readonly exports: { gemm: Gemm };
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
export interface Kernel {
  /** C[m,n] (+)= A[m,k]·B[k,n]; see kernel-code.ts for the rules on n, pointers and strides. */
  readonly gemm: Gemm;
  /** Reserves `length` floats, 16-byte aligned, filled with zeros. Throws RangeError when the memory is used up. */
  allocate(length: number): Tensor;
}

/** Compiles the kernel on first use (a few milliseconds) and gives it room for `floats` floats plus alignment. */
export function createKernel(floats: number): Kernel {
  compiled ??= new WebAssembly.Module(gemmModuleBytes());
  const pages = Math.ceil((floats * 4 + PAGE_BYTES) / PAGE_BYTES);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const instance = new WebAssembly.Instance(compiled, { e: { m: memory } });
  let used = 0;
  return {
    gemm: instance.exports.gemm,
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
