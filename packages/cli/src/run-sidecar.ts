/** `tito sidecar` from its arguments to its exit code, without the tree of commands. */
import { parseFlags, sidecarCommand } from "@tito/sidecar";
import { reportFailure } from "./fail.js";

/** @param args without node and script; the word `sidecar` may stand first. Never throws. */
export async function runSidecar(args: readonly string[]): Promise<number> {
  try {
    const { flags } = parseFlags(args[0] === "sidecar" ? args.slice(1) : args);
    return await sidecarCommand(flags, (line) => void process.stdout.write(line));
  } catch (error) {
    return reportFailure(error, false);
  }
}
