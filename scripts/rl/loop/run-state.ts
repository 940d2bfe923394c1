/** An arm's state on disk. An iteration is done when its row is there; what is behind the last row is begun anew. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HeldOut, IterationRow } from "./iteration-row.js";
import { differingOptions, type LoopOptions } from "./options.js";

/** Why a directory cannot be used as it is asked for. The message says what to do instead. */
export class CannotResume extends Error {}

export class RunState {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** A new run in `dir`, or the one that is there. Throws `CannotResume` when it is another run than the one asked for, or not whole. */
  static open(dir: string, options: LoopOptions, resume: boolean): RunState {
    const state = new RunState(dir);
    const file = join(dir, "options.json");
    if (existsSync(file)) {
      if (!resume) throw new CannotResume(`${dir} holds a run; go on with it by --resume, or name another --out`);
      const differing = differingOptions(readJson(file), options);
      if (differing.length > 0) throw new CannotResume(`${dir} holds another run: ${differing.join(", ")}`);
      state.#assertWhole();
    } else {
      mkdirSync(join(dir, "iterations"), { recursive: true });
      mkdirSync(join(dir, "weights"), { recursive: true });
      writeJson(file, options);
    }
    return state;
  }

  /** Checkpoint that training iteration `version` − 1 left; version 0 is the start policy. */
  weightsDir(version: number): string {
    return join(this.dir, "weights", `step-${version}`);
  }

  /** Rows of the iterations that are done, in order. */
  rows(): IterationRow[] {
    const rows: IterationRow[] = [];
    while (existsSync(this.#rowFile(rows.length))) rows.push(readJson(this.#rowFile(rows.length)));
    return rows;
  }

  /** Call it last: from here on the iteration is done. */
  addRow(row: IterationRow): void {
    writeJson(this.#rowFile(row.iteration), row);
  }

  heldOut(version: number): HeldOut | null {
    return existsSync(this.#heldOutFile(version)) ? readJson(this.#heldOutFile(version)) : null;
  }

  addHeldOut(version: number, heldOut: HeldOut): void {
    writeJson(this.#heldOutFile(version), heldOut);
  }

  /** Counts the starts of this run: 1 the first time. */
  nextAttempt(): number {
    const file = join(this.dir, "attempts.json");
    const attempt = existsSync(file) ? readJson<number>(file) + 1 : 1;
    writeJson(file, attempt);
    return attempt;
  }

  #assertWhole(): void {
    const done = this.rows().length;
    for (let version = 0; version <= done; version++) {
      const weights = join(this.weightsDir(version), "model.safetensors");
      if (done > 0 && !existsSync(weights))
        throw new CannotResume(`${weights} is gone: this run cannot be resumed, start another in a new --out`);
    }
  }

  #rowFile(iteration: number): string {
    return join(this.dir, "iterations", `${iteration}.json`);
  }

  #heldOutFile(version: number): string {
    return join(this.dir, `held-out-${version}.json`);
  }
}

function readJson<T>(file: string): T {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch (cause) {
    throw new CannotResume(`${file} cannot be read; start another run in a new --out`, { cause });
  }
}

/** The file has the old text or the new one, whatever happens meanwhile. */
function writeJson(file: string, value: unknown): void {
  writeFileSync(`${file}.tmp`, `${JSON.stringify(value, undefined, 1)}\n`);
  renameSync(`${file}.tmp`, file);
}
