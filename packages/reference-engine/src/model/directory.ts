import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import { z } from "zod";
import type { Tokenizer } from "../lm/index.js";
import { parseTokenizer } from "../lm/tokenizer.js";

/** What the engine reads of a Hugging Face model directory besides its weights and its vocabulary. */
export interface ModelDirectory {
  dir: string;
  chatTemplate: string;
  tokenizer: Tokenizer;
  /** Ids that end an answer. */
  eosIds: ReadonlySet<number>;
  maxPositionEmbeddings: number;
  bosToken: string;
  eosToken: string;
}

const idOrIds = z.union([z.number().int(), z.array(z.number().int())]);
const tokenText = z.union([z.string(), z.object({ content: z.string() })]).nullish();
const configSchema = z.object({
  max_position_embeddings: z.number().int().positive(),
  eos_token_id: idOrIds.nullish(),
});
const generationSchema = z.object({ eos_token_id: idOrIds.nullish() });
const tokenizerConfigSchema = z.object({ bos_token: tokenText, eos_token: tokenText });
/** Reads the small files of a model directory. Throws `not_found` for a missing file, `bundle_invalid` for one that does not say what it must. */
export function readModelDirectory(dir: string): ModelDirectory {
  const config = readJson(dir, "config.json", configSchema, true);
  const generation = readJson(dir, "generation_config.json", generationSchema, false);
  const names = readJson(dir, "tokenizer_config.json", tokenizerConfigSchema, false);
  const tokenizer = parseTokenizer(readText(dir, "tokenizer.json"), join(dir, "tokenizer.json"));
  const eos = generation?.eos_token_id ?? config.eos_token_id;
  const eosToken = textOf(names?.eos_token);
  const named = tokenizer.specialIds.get(eosToken);
  const eosIds = new Set(typeof eos === "number" ? [eos] : (eos ?? []));
  if (named !== undefined) eosIds.add(named);
  if (eosIds.size === 0) {
    throw new TitoError("bundle_invalid", `engine: ${dir} names no end-of-sequence token`, {
      hint: "set eos_token_id in config.json",
    });
  }
  return {
    dir,
    chatTemplate: readText(dir, "chat_template.jinja"),
    tokenizer,
    eosIds,
    maxPositionEmbeddings: config.max_position_embeddings,
    bosToken: textOf(names?.bos_token),
    eosToken,
  };
}

function textOf(token: z.infer<typeof tokenText>): string {
  return typeof token === "string" ? token : (token?.content ?? "");
}

function readText(dir: string, name: string): string {
  try {
    return readFileSync(join(dir, name), "utf8");
  } catch (cause) {
    throw new TitoError("not_found", `engine: cannot read ${join(dir, name)}`, {
      cause,
      hint: "--weights must name a complete Hugging Face model directory",
    });
  }
}

function readJson<T>(dir: string, name: string, schema: z.ZodType<T>, required: true): T;
function readJson<T>(dir: string, name: string, schema: z.ZodType<T>, required: boolean): T | null;
function readJson<T>(dir: string, name: string, schema: z.ZodType<T>, required: boolean): T | null {
  let text: string;
  try {
    text = readText(dir, name);
  } catch (error) {
    if (required) throw error;
    return null;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("bundle_invalid", `engine: ${join(dir, name)} is not JSON`, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new TitoError(
    "bundle_invalid",
    `engine: ${join(dir, name)}: ${z.prettifyError(parsed.error).replaceAll("\n", " ")}`,
  );
}
