/**
 * Bundles for every family with a small vocabulary of bytes, a few merges and the family's own tokens: what a parser or a template does then
 * does not hang on which real vocabularies are installed.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadBundle } from "../src/bundle/load-bundle.js";
import { makeBundle } from "../src/bundle/make-bundle.js";
import type { BundleManifest } from "../src/bundle/manifest.js";
import { FAMILIES } from "../src/families/families.js";
import { PromptRenderer } from "../src/prompt-renderer.js";

const MERGES = ["t h", "th e", "i n", "in g", "a n", "an d", "e r", "o r", "Ġ Ġ", "ĠĠ ĠĠ"];
/** Tokens of roles and structure that real vocabularies flag special. */
const SPECIAL = [
  "<|im_start|>",
  "<|im_end|>",
  "<|endoftext|>",
  "<|system|>",
  "<|user|>",
  "<|assistant|>",
  "<|observation|>",
  "[gMASK]",
  "<sop>",
  "<|im_user|>",
  "<|im_assistant|>",
  "<|im_system|>",
  "<|im_middle|>",
  "<|open|>",
  "<|close|>",
  "<|sep|>",
  "<|end_of_msg|>",
  "<｜begin▁of▁sentence｜>",
  "<｜end▁of▁sentence｜>",
  "<|start|>",
  "<|end|>",
  "<|message|>",
  "<|channel|>",
  "<|constrain|>",
  "<|call|>",
  "<|return|>",
  "<|begin_of_text|>",
  "<|start_header_id|>",
  "<|end_header_id|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "]~!b[",
  "]~b]",
  "[e~[",
];

function byteSymbols(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(printable ? byte : next++);
  });
}

/** A tokenizer.json in Hugging Face's form. */
export function byteTokenizerJson(family: string): string {
  const vocab: Record<string, number> = {};
  for (const symbol of byteSymbols()) vocab[symbol] = Object.keys(vocab).length;
  for (const merge of MERGES) vocab[merge.replace(" ", "")] = Object.keys(vocab).length;
  const texts = [...new Set([...SPECIAL, ...FAMILIES[family]!.structure, "<tool_response>", "</tool_response>"])];
  const base = Object.keys(vocab).length;
  return JSON.stringify({
    added_tokens: texts.map((content, i) => ({
      id: base + i,
      content,
      special: SPECIAL.includes(content),
      lstrip: false,
      rstrip: false,
      single_word: false,
      normalized: false,
    })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    model: { type: "BPE", vocab, merges: MERGES },
  });
}

export function templatePath(family: string): string {
  const path = family === "demo" ? "../../../fixtures/policy/chat_template.jinja" : `../templates/${family}.jinja`;
  return fileURLToPath(new URL(path, import.meta.url));
}

/** A bundle that is not the family's plain one. */
export interface BundleChanges {
  args?: BundleManifest["template_arguments"];
  /** The family's template, changed. */
  template?: (text: string) => string;
  /** A directory with a real vocabulary in place of the small one. */
  vocabulary?: string;
}

/** Makes a bundle in a directory of its own, calls `use`, removes the directory. */
export async function withByteBundle<T>(
  family: string,
  use: (directory: string) => Promise<T>,
  { args: templateArguments = {}, template: change, vocabulary }: BundleChanges = {},
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "tito-bundle-"));
  try {
    const from = vocabulary ?? join(directory, "tokenizer.json");
    if (vocabulary === undefined) await writeFile(from, byteTokenizerJson(family));
    const out = join(directory, "bundle");
    let template = templatePath(family);
    if (change !== undefined) {
      const text = change(await readFile(template, "utf8"));
      template = join(directory, "chat_template.jinja");
      await writeFile(template, text);
    }
    await makeBundle({ from, template, family, out, date: "2026-11-30", templateArguments });
    return await use(out);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function openByteRenderer(
  family: string,
  args: BundleManifest["template_arguments"] = {},
): Promise<PromptRenderer> {
  return openChangedRenderer(family, { args });
}

export function openChangedRenderer(family: string, changes: BundleChanges): Promise<PromptRenderer> {
  return withByteBundle(family, async (directory) => PromptRenderer.open(await loadBundle(directory)), changes);
}
