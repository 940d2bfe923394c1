/** All arms of one seed, side by side: a program each. None is left behind, whatever happens. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ArmResult } from "../report/pooled.js";
import type { ArmOptions } from "./arm.js";
import type { ArmMessage } from "./arm-message.js";
import type { HeldOut, IterationRow } from "./iteration-row.js";
import { CannotResume } from "./run-state.js";

const PROGRAM = resolve(import.meta.dirname, "../arm-program.ts");
/** An arm stops its engine and its gateway meanwhile. */
const STOP_TIMEOUT_MS = 45_000;

export interface SeedRun {
  readonly arms: readonly ArmOptions[];
  readonly signal: AbortSignal;
  onRow(arm: ArmOptions, row: IterationRow): void;
}

/** Runs the arms to their end. Rejects with the first failure, or when the signal fires, once every process has ended. */
export async function runArms(run: SeedRun): Promise<ArmResult[]> {
  const failed = new AbortController();
  const stop = AbortSignal.any([run.signal, failed.signal]);
  const settled = await Promise.allSettled(
    run.arms.map((arm) =>
      runArmProgram(arm, stop, (row) => run.onRow(arm, row)).catch((error: unknown) => {
        failed.abort();
        throw error;
      }),
    ),
  );
  run.signal.throwIfAborted();
  const reasons = settled.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
  const first = reasons.find((reason) => reason.name !== "AbortError");
  if (first !== undefined) throw first;
  return settled.map((one) => (one as PromiseFulfilledResult<ArmResult>).value);
}

async function runArmProgram(
  arm: ArmOptions,
  signal: AbortSignal,
  onRow: (row: IterationRow) => void,
): Promise<ArmResult> {
  mkdirSync(arm.dir, { recursive: true });
  const rows: IterationRow[] = [];
  const heldOut = new Map<number, HeldOut>();
  const failures: Error[] = [];
  // A process group of its own: one signal of the terminal goes to the demo alone, and what an arm leaves behind can be ended with it.
  const child = spawn(process.execPath, ["--import", "tsx", PROGRAM, JSON.stringify(arm)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    detached: true,
  });
  child.on("message", (message: ArmMessage) => {
    switch (message.type) {
      case "row":
        rows.push(message.row);
        onRow(message.row);
        break;
      case "held_out":
        heldOut.set(message.version, message.heldOut);
        break;
      case "failed":
        failures.push(
          message.cannotResume ? new CannotResume(message.error) : new Error(`${arm.arm}: ${message.error}`),
        );
        break;
      default:
        message satisfies never;
    }
  });
  await ended(child, signal);
  if (failures[0] !== undefined) throw failures[0];
  signal.throwIfAborted();
  if (child.exitCode !== 0)
    throw new Error(
      `${arm.arm}: its program ended with ${child.signalCode ?? `exit code ${child.exitCode}`}, see ${join(arm.dir)}`,
    );
  return { arm: arm.arm, seed: arm.options.seed, rows, heldOut };
}

/** Waits for the program's end. When the signal fires it is asked to stop, and then made to; its process group is ended in any case. */
async function ended(child: ChildProcess, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const askToStop = (): void => {
    child.kill("SIGTERM");
    timer = setTimeout(() => endGroup(child), STOP_TIMEOUT_MS);
  };
  if (signal.aborted) askToStop();
  else signal.addEventListener("abort", askToStop, { once: true });
  await new Promise<void>((done) => {
    child.once("exit", () => done());
    child.once("error", () => done());
  });
  clearTimeout(timer);
  signal.removeEventListener("abort", askToStop);
  endGroup(child);
}

/** Ends every process of the arm's group that is still there. */
function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone: nothing was left behind.
  }
}
