/** Where an output goes and in which format, and that nothing which is read lies there. I/O edge: looks at names only. */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { TitoError } from "@tito/format";
import { FORMATS, type Format } from "./encoded-run.js";

export interface Place {
  format: Format;
  directory: boolean;
  /** Absolute, null for standard output. */
  path: string | null;
}

/** Errors: `usage` for what cannot be an output, `cannot_write` without the directory that it should lie in. */
export function placeOf(options: {
  out: string;
  format?: Format | undefined;
  resume?: boolean | undefined;
  stdout?: unknown;
}): Place {
  const { out } = options;
  const bySuffix = FORMATS.find((format) => out.endsWith(`.${format}`));
  const stat = out === "-" ? undefined : statOf(out);
  const directory = out !== "-" && (out.endsWith("/") || (stat?.isDirectory() ?? false));
  const format = options.format ?? (out === "-" ? "jsonl" : directory ? "parquet" : bySuffix);
  if (format === undefined)
    throw new TitoError("usage", `--out ${out}: no format`, {
      hint: "end the name with .jsonl, .parquet or .msgpack, or give --format",
    });
  if (options.resume && !directory)
    throw new TitoError("usage", "--resume needs a directory of shards", { hint: "end --out with /" });
  if (out === "-") {
    if (format === "parquet") throw new TitoError("usage", "Parquet cannot be streamed to standard output");
    if (!options.stdout) throw new TitoError("usage", "--out - needs a standard output");
    return { format, directory: false, path: null };
  }
  const path = resolve(out);
  refuseOther(path, directory, stat);
  return { format, directory, path };
}

/** What is there under the name; nothing when its directory is none, which is told later. */
function statOf(out: string): Stat {
  const path = resolve(out);
  return isDirectory(dirname(path)) ? statSync(path, { throwIfNoEntry: false }) : undefined;
}

/** False also where the way there leads through a file. */
function isDirectory(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

type Stat = { isDirectory(): boolean; isFile(): boolean } | undefined;

function refuseOther(path: string, directory: boolean, stat: Stat): void {
  if (!isDirectory(dirname(path))) {
    const parent = existsSync(dirname(path));
    const what = parent ? "is not a directory" : "does not exist";
    throw new TitoError("cannot_write", `${dirname(path)} ${what}`, {
      hint: parent ? "name another" : "create it first",
    });
  }
  if (directory && stat && !stat.isDirectory())
    throw new TitoError("already_exists", `${path} is a file, not a directory of shards`, { hint: "name another" });
  // The finished file takes the name: that would remove a device or a pipe.
  if (!directory && stat && !stat.isFile())
    throw new TitoError("usage", `--out ${path} is not a regular file`, { hint: "--out - streams JSON lines" });
}

/** Files of a trial that are read or hashed. */
const TRIAL_FILES: ReadonlySet<string> = new Set([
  ...["result.json", "config.json", "exception.txt", "reward.json", "reward.txt", "instruction.md"],
  ...["verifier", "artifacts"],
]);

/** Refuses an output that would overwrite, or change the evidence of, what it is made from. Errors: `usage`. */
export function refuseInput(
  place: Place,
  inputs: {
    files: readonly string[];
    trials: readonly { trial_dir: string; trajectories: readonly { dir: string }[] }[];
  },
): void {
  if (place.path === null) return;
  const path = join(realpathSync(dirname(place.path)), basename(place.path));
  const refuse = (what: string): never => {
    throw new TitoError("usage", `--out ${place.path} ${what}`, {
      hint: "an output must not change what it is made from",
    });
  };
  for (const file of inputs.files) if (existsSync(file) && realpathSync(file) === path) refuse("is one of the inputs");
  for (const { trial_dir, trajectories } of inputs.trials) {
    for (const { dir } of trajectories) if (isWithin(dir, path)) refuse(`lies in the trajectory ${dir}`);
    const [top] = relative(trial_dir, path).split(sep);
    if (TRIAL_FILES.has(top!)) refuse(`is evidence of the trial ${trial_dir}`);
  }
}

function isWithin(dir: string, path: string): boolean {
  return path === dir || path.startsWith(dir + sep);
}
