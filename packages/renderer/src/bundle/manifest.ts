/** What a renderer bundle is made of, and its digest: the renderer contract id that every turn stores. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";

export const BUNDLE_SCHEMA = "tito.renderer_bundle/v1";

/** Every file of a bundle beside the manifest. */
export const BUNDLE_FILES = ["ranks.txt", "tokenizer.json", "template.jinja", "bpe.wasm"] as const;
export type BundleFile = (typeof BUNDLE_FILES)[number];

interface FileDigest {
  bytes: number;
  sha256: string;
}

export interface BundleManifest {
  schema: typeof BUNDLE_SCHEMA;
  family: string;
  /** What the template takes for today, YYYY-MM-DD. */
  date: string;
  /** Template variables that hold special tokens. */
  template_variables: Record<string, string>;
  /** Arguments that every render passes to the template, such as enable_thinking; a request may override them. */
  template_arguments: Record<string, string | number | boolean | null>;
  /** The files that the bundle was made from. */
  sources: { tokenizer_json_sha256: string; template_sha256: string };
  files: Record<BundleFile, FileDigest>;
}

export const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

const sorted = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
};

/** The manifest as it is written and digested: keys in order, one line. */
export const manifestText = (manifest: BundleManifest): string => `${JSON.stringify(sorted(manifest))}\n`;

/** `bundle:` and the SHA-256 of the manifest, which holds the digest of every other file. */
export const contractIdOf = (manifest: BundleManifest): string => `bundle:${sha256(manifestText(manifest))}`;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDigest = (value: unknown): boolean =>
  isRecord(value) && typeof value.bytes === "number" && typeof value.sha256 === "string";

/** @throws TitoError `bundle_invalid` when `text` is not a manifest of this schema. */
export function readManifest(text: string, path: string): BundleManifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("bundle_invalid", `${path} is not JSON`, { cause });
  }
  const files = isRecord(value) ? value.files : undefined;
  const sound =
    isRecord(value) &&
    value.schema === BUNDLE_SCHEMA &&
    typeof value.family === "string" &&
    typeof value.date === "string" &&
    isRecord(value.template_variables) &&
    isRecord(value.template_arguments) &&
    isRecord(value.sources) &&
    isRecord(files) &&
    BUNDLE_FILES.every((name) => isDigest(files[name]));
  if (!sound) throw new TitoError("bundle_invalid", `${path} is not a manifest of schema ${BUNDLE_SCHEMA}`);
  return value as unknown as BundleManifest;
}
