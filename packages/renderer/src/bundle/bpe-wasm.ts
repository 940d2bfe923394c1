/** The tokenizer's WASM module. The release build has another module in this place (scripts/release/stand-ins.ts). */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

export function bpeWasm(): Promise<Buffer> {
  return readFile(createRequire(import.meta.url).resolve("tiktoken/lite/tiktoken_bg.wasm"));
}
