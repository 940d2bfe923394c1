/** What the engine itself wrote down: the witness that all arms are held against, and that none of them trains from. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { LogEntry } from "@tito/reference-engine";
import type { TrainingSample } from "../trainer/training-sample.js";

export type SampledAnswer = Pick<LogEntry, "prompt_ids" | "sampled_ids" | "logprobs" | "weight_versions">;

/** Follows the engine's log file. */
export class EngineLog {
  readonly #file: string;
  #read = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** The answers that were logged since the last call. */
  take(): SampledAnswer[] {
    const fd = openSync(this.#file, "r");
    try {
      const bytes = Buffer.alloc(fstatSync(fd).size - this.#read);
      readSync(fd, bytes, 0, bytes.length, this.#read);
      const whole = bytes.lastIndexOf(0x0a) + 1;
      this.#read += whole;
      const lines = bytes.subarray(0, whole).toString("utf8").split("\n");
      return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LogEntry);
    } finally {
      closeSync(fd);
    }
  }
}

/** For each trained token of a sample: the log probability it was sampled with behind exactly the tokens before it, or null when it never was. */
export function sampledLogprobs(sample: TrainingSample, answers: readonly SampledAnswer[]): Map<number, number | null> {
  const { tokens, mask } = sample;
  const found = new Map<number, number | null>();
  mask.forEach((bit, index) => {
    if (bit === 1) found.set(index, null);
  });
  for (const { prompt_ids, sampled_ids, logprobs } of answers) {
    if (!prompt_ids.every((id, index) => tokens[index] === id)) continue;
    for (const [offset, id] of sampled_ids.entries()) {
      const index = prompt_ids.length + offset;
      if (tokens[index] !== id) break;
      if (found.has(index)) found.set(index, logprobs[offset]!);
    }
  }
  return found;
}
