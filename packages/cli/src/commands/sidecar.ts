import { sidecarCommand } from "@tito/sidecar";
import type { Register } from "./command.js";
import { addSidecarFlags, flagValues } from "./sidecar-flags.js";

/** `tito sidecar`: the recorder between a harness and an inference engine. */
export const registerSidecar: Register = (program, outcome) => {
  const command = program
    .command("sidecar")
    .summary("record what a harness and an engine say to each other")
    .description(
      "Listens on loopback, relays a harness's calls to the engine and records the exact ids and log probabilities of every call.\nThe first line on standard output is the endpoint as JSON; logs go to standard error. SIGTERM seals.",
    );
  addSidecarFlags(command, { run: false });
  command.action(async (flags: Record<string, unknown>) => {
    outcome.exitCode = await sidecarCommand(flagValues(flags), (line) => void process.stdout.write(line));
  });
};
