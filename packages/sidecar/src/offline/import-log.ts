/**
 * `tito import`: segment files from a log of calls. The log is read twice: first every line is checked and put to its trajectory, so that
 * nothing is written when a line is damaged; then one trajectory after the other is recorded, with the code that records live calls.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { isTrajectoryId, type ManifestStatus, TitoError } from "@tito/format";
import { WRITER_VERSION } from "../process/sidecar.js";
import type { ImportOptions } from "./import-options.js";
import { type BadLine, ImportPlan, ownCallId, type PlannedTrajectory, untold } from "./import-plan.js";
import { ImportedTrajectory } from "./import-trajectory.js";
import { readLine } from "./line.js";
import { LineReader } from "./log-lines.js";

export interface ImportedSummary {
  trajectory_id: string;
  dir: string;
  calls: number;
  turns: number;
  segments: number;
  sampled_tokens: number;
  uncaptured: number;
  gaps: number;
  defects: Record<string, number>;
  status: ManifestStatus;
}

export interface ImportReport {
  trajectories: ImportedSummary[];
  lines: number;
  bad: BadLine[];
  /** Fields that nothing reads → in how many lines. */
  ignored: Record<string, number>;
  warnings: string[];
}

/**
 * @throws TitoError `usage` for incremental mode, `format_invalid` with file and line for a damaged one, `already_exists` for a trajectory
 * that is there, `cannot_write`, `capture_degraded`.
 */
export async function importLog(options: ImportOptions): Promise<ImportReport> {
  checkOptions(options);
  const plan = new ImportPlan(options);
  for (const [log, file] of options.logs.entries()) await plan.read(log, file);
  plan.spreadGaps();
  const planned = [...plan.trajectories];
  if (planned.length === 0) {
    throw new TitoError("format_invalid", `${options.logs.join(", ")}: no record of a call in ${plan.lines} lines`);
  }
  for (const [id] of planned) {
    const dir = join(options.out, id);
    if (existsSync(dir)) {
      throw new TitoError("already_exists", `${dir} is there already`, {
        hint: "choose another --out: what was recorded is never added to or replaced",
      });
    }
  }
  const trajectories: ImportedSummary[] = [];
  for (const [id, one] of planned) {
    trajectories.push(await writeTrajectory(id, one, plan));
    options.onProgress?.(trajectories.length, planned.length);
  }
  return {
    trajectories,
    lines: plan.lines,
    bad: plan.bad,
    ignored: Object.fromEntries(plan.ignored),
    warnings: [...plan.warnings, ...untold(plan)],
  };
}

function checkOptions(options: ImportOptions): void {
  if (options.promptMode === "incremental") {
    throw new TitoError(
      "usage",
      "--tito-prompt-mode incremental: a log can only be imported as full_history, because a prompt cannot be replaced after the fact",
      {
        hint: "the ids of these prompts were sampled from already; incremental needs a sidecar in front of the engine",
      },
    );
  }
  if (options.trajectoryId !== undefined && !isTrajectoryId(options.trajectoryId)) {
    throw new TitoError("usage", "--trajectory-id: use 1 to 64 of the characters A-Z a-z 0-9 _ -");
  }
}

async function writeTrajectory(id: string, planned: PlannedTrajectory, plan: ImportPlan): Promise<ImportedSummary> {
  const { options } = plan;
  const logs = [...new Set(planned.lines.map((line) => line.log))];
  const input = {
    trajectoryId: id,
    labels: planned.labels,
    configJson: JSON.stringify({
      import: logs.map((log) => plan.identities[log]),
      prompt_mode: "full_history",
    }),
    writerVersion: WRITER_VERSION,
  };
  const trajectory = await ImportedTrajectory.open(input, options, plan.counting);
  const readers = new Map(logs.map((log) => [log, new LineReader(options.logs[log]!)]));
  try {
    for (const { log, place } of planned.lines) {
      const line = readLine(readers.get(log)!.read(place), ownCallId(log, place));
      const source = { path: basename(options.logs[log]!), line: place.line };
      for (const call of line.calls) {
        try {
          await trajectory.add(call, source);
        } catch (error) {
          plan.refuse({ log, place, error, trajectory_id: id });
          trajectory.noteGap(`${source.path}:${place.line}: ${(error as TitoError).message}`);
        }
      }
    }
    for (const gap of planned.gaps) trajectory.noteGap(gap);
    const { manifest } = await trajectory.seal();
    const { calls, turns, segments, sampled_tokens, uncaptured, gaps } = manifest.counts;
    return {
      trajectory_id: id,
      dir: join(options.out, id),
      ...{ calls, turns, segments, sampled_tokens, uncaptured, gaps },
      defects: Object.fromEntries(trajectory.defects),
      status: manifest.status,
    };
  } catch (error) {
    trajectory.abandon();
    throw error;
  } finally {
    for (const reader of readers.values()) reader.close();
  }
}
