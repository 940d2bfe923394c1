/** The tree of commands. Each command's module is loaded only when it runs: starting a sidecar must not load a materializer. */
import { Command } from "commander";
import { registerBundle } from "./commands/bundle.js";
import { registerCertify } from "./commands/certify.js";
import { registerDoctor } from "./commands/doctor.js";
import { registerEngine } from "./commands/engine.js";
import { registerExplain } from "./commands/explain.js";
import { registerHarness } from "./commands/harness.js";
import { registerImport } from "./commands/import.js";
import { registerInspect } from "./commands/inspect.js";
import { registerMaterialize } from "./commands/materialize.js";
import { registerRun } from "./commands/run.js";
import { registerSidecar } from "./commands/sidecar.js";
import { registerVerify } from "./commands/verify.js";
import { reportFailure } from "./fail.js";
import { packageVersion } from "./version.js";

/** Runs the command line `args` (without node and script) and answers the exit code. Never throws. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const outcome = { exitCode: 0 };
  const program = new Command("tito")
    .description(
      "Records the exact token ids and log probabilities that an agent's policy saw and sampled, and turns them into training samples.",
    )
    .version(packageVersion())
    .showHelpAfterError("(tito --help lists the commands)")
    .enablePositionalOptions()
    .exitOverride();
  for (const register of [
    registerRun,
    registerSidecar,
    registerMaterialize,
    registerInspect,
    registerVerify,
    registerExplain,
    registerImport,
    registerHarness,
    registerBundle,
    registerCertify,
    registerEngine,
    registerDoctor,
  ]) {
    register(program, outcome);
  }
  try {
    await program.parseAsync([...args], { from: "user" });
    return outcome.exitCode;
  } catch (error) {
    return reportFailure(error, args.includes("--json"));
  }
}
