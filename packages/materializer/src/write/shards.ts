/** A directory of shards: what an earlier run left in it, and which of its files are finished. I/O edge. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import { ZodError } from "zod";
import { cannotWrite } from "./byte-target.js";
import { manifestPath, type OutputFile, outputFileSchema, outputManifestSchema } from "./output-manifest.js";

/** Shards that are finished while the manifest is not written yet: one JSON line each. */
const NOTES = "materialized.partial.jsonl";
/** Temporary names of a killed run. */
const LEFTOVER = /^(shard-\d{4}-of-\d{4}\.(jsonl|parquet|msgpack)|materialized\.json)\.\d+\.tmp$/;
const SHARD = /^shard-\d{4}-of-\d{4}\.(jsonl|parquet|msgpack)$/;

/**
 * Creates the directory, or takes over one that an earlier materialization made. Returns the shards that may be kept when `resume`.
 * From here until {@link closeShards} the directory has no manifest: it is not finished.
 * Errors: `already_exists` when the directory holds anything else, `cannot_write`.
 */
export function openShards(path: string, resume: boolean): OutputFile[] {
  // Not recursive: the parent is there, and Node never comes back from trying in /proc.
  try {
    if (!existsSync(path)) mkdirSync(path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  const own = (name: string) =>
    SHARD.test(name) || name === NOTES || name === "materialized.json" || LEFTOVER.test(name);
  const foreign = readdirSync(path).find((name) => !own(name));
  if (foreign !== undefined) {
    throw new TitoError("already_exists", `${path} holds ${foreign}, which no materialization wrote`, {
      hint: "give --out a directory of its own",
    });
  }
  const finished = resume ? [...manifestShards(path), ...notedShards(path)] : [];
  for (const name of readdirSync(path)) if (!SHARD.test(name)) rmSync(join(path, name));
  for (const shard of finished) noteShard(path, shard);
  return finished;
}

function manifestShards(path: string): OutputFile[] {
  const file = manifestPath(path, true);
  if (!existsSync(file)) return [];
  try {
    return outputManifestSchema.parse(JSON.parse(readFileSync(file, "utf8"))).outputs;
  } catch (error) {
    // A manifest that is not one says nothing about the shards: they are written again.
    if (error instanceof SyntaxError || error instanceof ZodError) return [];
    throw error;
  }
}

/** Lines that were cut off by a kill are left out; their shards are written again. */
function notedShards(path: string): OutputFile[] {
  const file = join(path, NOTES);
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        const parsed = outputFileSchema.safeParse(JSON.parse(line));
        return parsed.success ? [parsed.data] : [];
      } catch {
        return [];
      }
    });
}

/** Notes a finished shard, for a later `resume` should this run not get to its end. */
export function noteShard(path: string, shard: OutputFile): void {
  appendFileSync(join(path, NOTES), `${JSON.stringify(shard)}\n`);
}

/** After the manifest: removes the notes, and shards that no longer belong to the output. */
export function closeShards(path: string, outputs: readonly OutputFile[]): void {
  const current = new Set(outputs.map((output) => output.path));
  for (const name of readdirSync(path)) if (SHARD.test(name) && !current.has(name)) rmSync(join(path, name));
  rmSync(join(path, NOTES), { force: true });
}
