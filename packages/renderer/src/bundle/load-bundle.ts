/** Reads a renderer bundle and refuses one that does not match its manifest. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import type { AddedToken, TokenizerData } from "../tokenizer/tokenizer-data.js";
import { BUNDLE_FILES, type BundleFile, type BundleManifest, contractIdOf, readManifest, sha256 } from "./manifest.js";

export interface Bundle {
  directory: string;
  /** The renderer contract id. */
  contractId: string;
  manifest: BundleManifest;
  tokenizer: TokenizerData;
  template: string;
  bpeWasm: Uint8Array;
}

async function read(directory: string, name: string): Promise<Buffer> {
  try {
    return await readFile(join(directory, name));
  } catch (cause) {
    throw new TitoError("bundle_invalid", `the renderer bundle ${directory} has no readable ${name}`, { cause });
  }
}

/** @throws TitoError `bundle_invalid` when a file is missing or differs from the manifest. */
export async function loadBundle(directory: string): Promise<Bundle> {
  const manifest = readManifest(
    (await read(directory, "manifest.json")).toString("utf8"),
    join(directory, "manifest.json"),
  );
  const contents = new Map<BundleFile, Buffer>();
  const files = await Promise.all(BUNDLE_FILES.map((name) => read(directory, name)));
  for (const [i, name] of BUNDLE_FILES.entries()) {
    const bytes = files[i]!;
    const wanted = manifest.files[name];
    if (bytes.length !== wanted.bytes || sha256(bytes) !== wanted.sha256) {
      throw new TitoError(
        "bundle_invalid",
        `${join(directory, name)} is not the file that the bundle's manifest names`,
        {
          hint: "Make the bundle again with tito bundle; a bundle is never edited.",
        },
      );
    }
    contents.set(name, bytes);
  }
  const head = JSON.parse(contents.get("tokenizer.json")!.toString("utf8")) as Omit<TokenizerData, "ranks">;
  return {
    directory,
    contractId: contractIdOf(manifest),
    manifest,
    tokenizer: {
      ...head,
      added_tokens: head.added_tokens as AddedToken[],
      ranks: contents.get("ranks.txt")!.toString("latin1"),
    },
    template: contents.get("template.jinja")!.toString("utf8"),
    bpeWasm: contents.get("bpe.wasm")!,
  };
}
