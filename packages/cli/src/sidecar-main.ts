/**
 * `tito sidecar` as a program of its own. It is built into one file (bundle.mjs), because a sidecar starts with every rollout: resolving and
 * reading two hundred modules would cost more than all the rest of its start. Only a renderer bundle makes it load more, `@tito/renderer/thread`.
 */
import { parseFlags, sidecarCommand } from "@tito/sidecar";
import { reportFailure } from "./fail.js";

const args = process.argv.slice(2);
try {
  const { flags } = parseFlags(args[0] === "sidecar" ? args.slice(1) : args);
  process.exitCode = await sidecarCommand(flags, (line) => void process.stdout.write(line));
} catch (error) {
  process.exitCode = reportFailure(error, false);
}
