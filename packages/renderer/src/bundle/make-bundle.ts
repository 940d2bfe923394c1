/** Makes a renderer bundle from a model's own files. */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { TitoError } from "@tito/format";
import { familyOf } from "../families/families.js";
import { ChatTemplate } from "../template/chat-template.js";
import { convertTiktokenModel } from "../tokenizer/tiktoken-model.js";
import { convertTokenizerJson, type TokenizerData } from "../tokenizer/tokenizer-data.js";
import { bpeWasm } from "./bpe-wasm.js";
import {
  BUNDLE_FILES,
  BUNDLE_SCHEMA,
  type BundleFile,
  type BundleManifest,
  contractIdOf,
  manifestText,
  sha256,
} from "./manifest.js";

export interface MakeBundleOptions {
  /** A model directory in Hugging Face's layout, a tokenizer.json, or a tiktoken.model with its tokenizer_config.json beside it. */
  from: string;
  /** Chat template file; default is the model directory's chat_template.jinja, else tokenizer_config.json's chat_template. */
  template?: string;
  family: string;
  /** Directory to make; must not exist. */
  out: string;
  /** What the template takes for today, YYYY-MM-DD; default is the day the bundle is made. Only matters where the template prints a date. */
  date?: string;
  templateArguments?: BundleManifest["template_arguments"];
}

async function read(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new TitoError("not_found", `cannot read the ${what} ${path}`, { cause });
  }
}

async function findTemplate(options: MakeBundleOptions, isDirectory: boolean): Promise<string> {
  if (options.template !== undefined) return read(options.template, "chat template");
  const own = join(options.from, "chat_template.jinja");
  if (isDirectory && existsSync(own)) return read(own, "chat template");
  const inConfig = isDirectory
    ? templateOf(await read(join(options.from, "tokenizer_config.json"), "configuration"))
    : undefined;
  if (typeof inConfig === "string") return inConfig;
  throw new TitoError("usage", `no chat template in ${options.from}`, { hint: "Pass --template FILE." });
}

function templateOf(configText: string): unknown {
  try {
    return (JSON.parse(configText) as { chat_template?: unknown } | null)?.chat_template;
  } catch (cause) {
    throw new TitoError("bundle_invalid", "tokenizer_config.json is not JSON", { cause });
  }
}

const TIKTOKEN_MODEL = "tiktoken.model";

/** The model's tokenizer, and the SHA-256 of the file that holds its vocabulary. */
async function readTokenizer(from: string, isDirectory: boolean): Promise<{ data: TokenizerData; sha256: string }> {
  const directory = isDirectory ? from : dirname(from);
  const kimi = isDirectory
    ? !existsSync(join(from, "tokenizer.json")) && existsSync(join(from, TIKTOKEN_MODEL))
    : basename(from) === TIKTOKEN_MODEL;
  const path = isDirectory ? join(from, kimi ? TIKTOKEN_MODEL : "tokenizer.json") : from;
  const text = await read(path, "tokenizer");
  const data = kimi
    ? convertTiktokenModel(text, await read(join(directory, "tokenizer_config.json"), "configuration"))
    : convertTokenizerJson(text);
  return { data, sha256: sha256(text) };
}

const tokenizerText = ({ split, normalizer, added_tokens }: TokenizerData): string =>
  `${JSON.stringify({ split, normalizer, added_tokens })}\n`;

/**
 * Makes the bundle and returns its contract id. The directory appears whole or not at all.
 * @throws TitoError `unsupported` when the tokenizer cannot be converted without changing ids or the family is not known; `already_exists`.
 */
export async function makeBundle(
  options: MakeBundleOptions,
): Promise<{ contractId: string; manifest: BundleManifest }> {
  const family = familyOf(options.family);
  const date = options.date ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new TitoError("usage", `date ${JSON.stringify(date)} is not YYYY-MM-DD`);
  if (existsSync(options.out)) throw new TitoError("already_exists", `${options.out} is there already`);
  const isDirectory = (await stat(options.from).catch(() => null))?.isDirectory() ?? false;
  const template = await findTemplate(options, isDirectory);
  const { data, sha256: tokenizerSha256 } = await readTokenizer(options.from, isDirectory);
  new ChatTemplate(template, family.template_variables, date);
  const contents: Record<BundleFile, Buffer> = {
    "ranks.txt": Buffer.from(data.ranks),
    "tokenizer.json": Buffer.from(tokenizerText(data)),
    "template.jinja": Buffer.from(template),
    "bpe.wasm": await bpeWasm(),
  };
  const digests = BUNDLE_FILES.map((name) => [name, { bytes: contents[name].length, sha256: sha256(contents[name]) }]);
  const manifest: BundleManifest = {
    schema: BUNDLE_SCHEMA,
    family: options.family,
    date,
    template_variables: { ...family.template_variables },
    template_arguments: options.templateArguments ?? {},
    sources: { tokenizer_json_sha256: tokenizerSha256, template_sha256: sha256(template) },
    files: Object.fromEntries(digests) as BundleManifest["files"],
  };
  await writeWhole(options.out, { ...contents, "manifest.json": Buffer.from(manifestText(manifest)) });
  return { contractId: contractIdOf(manifest), manifest };
}

async function writeWhole(out: string, contents: Record<string, Buffer>): Promise<void> {
  const partial = `${out}.partial-${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    for (const [name, bytes] of Object.entries(contents)) await writeFile(join(partial, name), bytes, { flag: "wx" });
    await rename(partial, out);
  } catch (cause) {
    await rm(partial, { recursive: true, force: true });
    throw new TitoError("cannot_write", `cannot write the bundle ${out}`, { cause });
  }
}
