/**
 * CRC-32C (Castagnoli), as in RFC 3720 B.4. Own code because Node has none: `zlib.crc32` is another polynomial and younger than Node 20.0.
 * The fast path is a small WebAssembly module with SIMD; where that cannot be compiled, the table walk below does the same, slower.
 */
import { CRC32C_WASM_BASE64 } from "./crc32c-wasm.js";

/** Where crc32c.wat expects its input, and how much of it at a time. */
const INPUT_OFFSET = 11536;
const INPUT_BYTES_MAX = 131072;

/** What is used of WebAssembly; the type library of Node 20 does not name it. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: unknown };
};

interface FastExports {
  memory: { buffer: ArrayBuffer };
  init: () => void;
  update: (bytes: number, crc: number) => number;
}

type Update = (data: Uint8Array, crc: number) => number;

const TABLE = makeTable();

function makeTable(): Uint32Array {
  const table = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
    table[byte] = crc;
  }
  return table;
}

/** One byte a step; the reference that the fast path is tested against. Takes and returns the inverted running value. */
export function updateByTable(data: Uint8Array, crc: number): number {
  let running = crc;
  for (let i = 0; i < data.length; i++) running = (running >>> 8) ^ TABLE[(running ^ data[i]!) & 255]!;
  return running;
}

/** Compiles the fast path; null where the machine has no WebAssembly SIMD. */
export function compileFastUpdate(): Update | null {
  try {
    const module = new WebAssembly.Module(Buffer.from(CRC32C_WASM_BASE64, "base64"));
    const exports = new WebAssembly.Instance(module).exports as FastExports;
    exports.init();
    const input = new Uint8Array(exports.memory.buffer, INPUT_OFFSET, INPUT_BYTES_MAX);
    return (data, crc) => {
      if (data.length <= INPUT_BYTES_MAX) {
        input.set(data);
        return exports.update(data.length, crc);
      }
      let running = crc;
      for (let start = 0; start < data.length; start += INPUT_BYTES_MAX) {
        const part = data.subarray(start, start + INPUT_BYTES_MAX);
        input.set(part);
        running = exports.update(part.length, running);
      }
      return running;
    };
  } catch {
    return null;
  }
}

let update: Update | undefined;

/** CRC-32C of `data` as an unsigned 32-bit number. */
export function crc32c(data: Uint8Array): number {
  update ??= compileFastUpdate() ?? updateByTable;
  return (update(data, -1) ^ -1) >>> 0;
}
