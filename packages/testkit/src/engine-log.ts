/** Compares what a trajectory recorded with what the engine itself says it saw and sampled, token by token. */
import { readFileSync } from "node:fs";
import { rebuildLines, type TrajectoryLog } from "@tito/format";
import type { LogEntry } from "@tito/reference-engine";

/** The engine's log file. Entries of its start-up probe and of other clients are in it too. */
export function readEngineLog(file: string): LogEntry[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogEntry);
}

/**
 * Every whole turn must be, bit by bit, one choice of the engine: prompt ids, sampled ids and log probabilities. A turn with a defect
 * must hold the beginning of one. Every choice behind `entriesBefore` that ended by itself and that no fault befell must be a turn.
 * @returns what differs, in words; empty when nothing does.
 */
export function differencesToEngine(log: TrajectoryLog, entries: readonly LogEntry[], entriesBefore = 0): string[] {
  const unmatched = new Set(entries.slice(entriesBefore));
  const lines = rebuildLines(log);
  const differences: string[] = [];
  for (const turn of lines.turns) {
    const { record } = turn;
    const promptIds = lines.promptIds(turn);
    const whole = record.defects.length === 0;
    const found = [...unmatched].find(
      (entry) =>
        same(entry.prompt_ids, promptIds) &&
        (whole
          ? same(entry.sampled_ids, record.sampled_ids) && same(entry.logprobs.map(Math.fround), record.logprobs ?? [])
          : same(entry.sampled_ids.slice(0, record.sampled_ids.length), record.sampled_ids)),
    );
    if (found === undefined)
      differences.push(`turn ${record.call_id} (commit ${turn.commit}) is nothing that the engine sampled`);
    else unmatched.delete(found);
  }
  const missing = [...unmatched].filter((entry) => entry.fault === null && entry.finish !== null && !entry.aborted);
  if (missing.length > 0)
    differences.push(`choices ${missing.map((entry) => entry.n).join(", ")} of the engine are in no turn`);
  return differences;
}

function same(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}
