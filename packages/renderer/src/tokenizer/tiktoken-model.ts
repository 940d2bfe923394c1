/** A `tiktoken.model` and the `tokenizer_config.json` beside it, which Kimi models ship instead of a `tokenizer.json`. */
import { TitoError } from "@tito/format";
import { type AddedToken, type TokenizerData, writeRanks } from "./tokenizer-data.js";

interface AddedTokenEntry {
  content?: unknown;
  lstrip?: unknown;
  rstrip?: unknown;
  single_word?: unknown;
}

const invalid = (what: string): TitoError => new TitoError("bundle_invalid", what);

/** Lines `base64 rank`: bytes by rank, which is the id. */
function readRanks(text: string): Map<number, Buffer> {
  const bytesById = new Map<number, Buffer>();
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const [, base64, rank] = /^([A-Za-z0-9+/]+=*) (\d+)\s*$/.exec(line) ?? [];
    if (base64 === undefined) throw invalid(`tiktoken.model: line ${i + 1} is not "base64 rank"`);
    bytesById.set(Number(rank), Buffer.from(base64, "base64"));
  }
  const singles = new Set([...bytesById.values()].filter((bytes) => bytes.length === 1).map((bytes) => bytes[0]));
  if (singles.size !== 256) throw invalid(`tiktoken.model: ${256 - singles.size} single bytes have no token`);
  return bytesById;
}

/**
 * The named tokens, all of them special whatever their flag says: the vendor's code hands them all to tiktoken as special tokens. It also gives the
 * unnamed ids of the reserved range names; no template writes those.
 */
function readAdded(configText: string): AddedToken[] {
  let entries: unknown;
  try {
    entries = (JSON.parse(configText) as { added_tokens_decoder?: unknown } | null)?.added_tokens_decoder;
  } catch (cause) {
    throw new TitoError("bundle_invalid", "tokenizer_config.json is not JSON", { cause });
  }
  if (typeof entries !== "object" || entries === null)
    throw invalid("tokenizer_config.json has no added_tokens_decoder");
  return Object.entries(entries as Record<string, AddedTokenEntry>).map(([id, token]) => {
    if (!/^\d+$/.test(id) || typeof token?.content !== "string" || token.content === "")
      throw invalid(`tokenizer_config.json: added token ${JSON.stringify(id)} has no id or no content`);
    if (token.lstrip === true || token.rstrip === true || token.single_word === true) {
      throw new TitoError("unsupported", `added token ${token.content} strips its surroundings`, {
        hint: "Use --renderer engine for this model: the engine then tokenizes.",
      });
    }
    return { id: Number(id), text: token.content, special: true, second_pass: false };
  });
}

/**
 * Converts a Kimi tokenizer. Its pre-tokenizer is in the vendor's code, the same for all generations.
 * @throws TitoError `bundle_invalid` when a file is not what it should be, `unsupported` when the conversion would not be exact.
 */
export function convertTiktokenModel(modelText: string, configText: string): TokenizerData {
  const bytesById = readRanks(modelText);
  const added = readAdded(configText);
  const taken = added.find((token) => bytesById.has(token.id));
  if (taken !== undefined) throw invalid(`tokenizer_config.json: ${taken.text} has an id of tiktoken.model`);
  return { split: "kimi", normalizer: null, added_tokens: added, ranks: writeRanks(bytesById) };
}
