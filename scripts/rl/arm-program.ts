/** The program of one arm: `node --import tsx scripts/rl/arm-program.ts JSON`. The demo starts one for each arm and hears from it over IPC. */

import { type ArmOptions, runArm } from "./loop/arm.js";
import type { ArmMessage } from "./loop/arm-message.js";
import { CannotResume } from "./loop/run-state.js";

const arm = JSON.parse(process.argv[2]!) as ArmOptions;
const stopped = new AbortController();
process.on("SIGTERM", () => stopped.abort());
process.on("SIGINT", () => stopped.abort());
// Whoever started this program is gone, however it went.
process.on("disconnect", () => stopped.abort());

const tell = (message: ArmMessage): void => {
  if (process.connected) process.send!(message);
};

try {
  await runArm(
    arm,
    {
      onRow: (row) => tell({ type: "row", row }),
      onHeldOut: (version, heldOut) => tell({ type: "held_out", version, heldOut }),
    },
    stopped.signal,
  );
} catch (error) {
  if (!stopped.signal.aborted) {
    const text = error instanceof CannotResume ? error.message : String((error as Error).stack ?? error);
    tell({ type: "failed", error: text, cannotResume: error instanceof CannotResume });
    process.exitCode = 1;
  }
}
if (process.connected) process.disconnect();
