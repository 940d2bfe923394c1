import { appendFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { WeightVersionSpan } from "./generate/weight-version.js";
import type { Sampling } from "./policy/policy.js";

const ENTRIES_MAX = 10_000;

/** Exactly what the engine saw and sampled for one choice, before any fault touched the reply. One line of NDJSON. */
export interface LogEntry {
  /** Line number, from 1, in the order in which choices ended. */
  n: number;
  request_id: string;
  path: string;
  model: string;
  choice: number;
  prompt_ids: readonly number[];
  sampled_ids: readonly number[];
  logprobs: readonly number[];
  /** `stop`, `length`, `abort`; null when the answer never came to an end. */
  finish: string | null;
  stop_reason: number | string | null;
  /** The client went before the end. */
  aborted: boolean;
  /** The kind of fault that befell the request. */
  fault: string | null;
  seed: number | null;
  sampling: Sampling;
  weight_versions: readonly WeightVersionSpan[];
}

/** The request log: a file when one is named, and in test mode the last 10,000 entries in memory. */
export class RequestLog {
  readonly #file: string | null;
  readonly #keep: boolean;
  readonly #entries: LogEntry[] = [];
  #lines = 0;

  /** Throws `cannot_write` when the file cannot be appended to. */
  constructor(file: string | null, keep: boolean) {
    this.#file = file;
    this.#keep = keep;
    if (file !== null) this.#append("");
  }

  add(entry: Omit<LogEntry, "n">): void {
    this.#lines++;
    const numbered: LogEntry = { n: this.#lines, ...entry };
    if (this.#keep) this.#entries.push(numbered);
    if (this.#entries.length > ENTRIES_MAX) this.#entries.shift();
    if (this.#file !== null) this.#append(`${JSON.stringify(numbered)}\n`);
  }

  entries(): readonly LogEntry[] {
    return this.#entries;
  }

  #append(text: string): void {
    try {
      appendFileSync(this.#file ?? "", text);
    } catch (cause) {
      throw new TitoError("cannot_write", `engine: cannot write the log ${this.#file}`, { cause });
    }
  }
}
