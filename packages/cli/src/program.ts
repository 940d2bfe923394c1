/** The tree of commands. Only the command that runs is loaded: no command pays for what another one needs. */
import { Command, CommanderError } from "commander";
import type { Register } from "./commands/command.js";
import { reportFailure } from "./fail.js";
import { packageVersion } from "./version.js";

const USAGE_EXIT = 64;

/** In the order of the help. */
const COMMANDS: ReadonlyMap<string, () => Promise<Register>> = new Map([
  ["run", async () => (await import("./commands/run.js")).registerRun],
  ["sidecar", async () => (await import("./commands/sidecar.js")).registerSidecar],
  ["materialize", async () => (await import("./commands/materialize.js")).registerMaterialize],
  ["inspect", async () => (await import("./commands/inspect.js")).registerInspect],
  ["verify", async () => (await import("./commands/verify.js")).registerVerify],
  ["export", async () => (await import("./commands/export.js")).registerExport],
  ["explain", async () => (await import("./commands/explain.js")).registerExplain],
  ["stats", async () => (await import("./commands/stats.js")).registerStats],
  ["health", async () => (await import("./commands/health.js")).registerHealth],
  ["import", async () => (await import("./commands/import.js")).registerImport],
  ["harness", async () => (await import("./commands/harness.js")).registerHarness],
  ["bundle", async () => (await import("./commands/bundle.js")).registerBundle],
  ["certify", async () => (await import("./commands/certify.js")).registerCertify],
  ["engine", async () => (await import("./commands/engine.js")).registerEngine],
  ["doctor", async () => (await import("./commands/doctor.js")).registerDoctor],
]);

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
  const named = COMMANDS.get(args[0] ?? "");
  const loads = named === undefined ? [...COMMANDS.values()] : [named];
  for (const register of await Promise.all(loads.map((load) => load()))) register(program, outcome);
  try {
    await program.parseAsync([...args], { from: "user" });
    return outcome.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE_EXIT;
    return reportFailure(error, args.includes("--json"));
  }
}
