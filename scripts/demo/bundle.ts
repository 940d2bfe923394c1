/** A renderer bundle of the embedded engine's own model, made and certified with the commands that a user has. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root, tito } from "./processes.js";

/** Makes `<out>/bundle` unless it is there, and answers the flags of `tito run` that use it. */
export async function rendererFlags(out: string, incremental: boolean): Promise<string[]> {
  const bundle = join(out, "bundle");
  if (!existsSync(bundle))
    await must(["bundle", "--from", join(root, "fixtures/policy"), "--family", "demo", "--out", bundle]);
  if (!incremental) return ["--renderer", bundle];
  await must(["certify", bundle]);
  return ["--renderer", bundle, "--tito-prompt-mode", "incremental"];
}

async function must(args: readonly string[]): Promise<void> {
  const made = await tito(args);
  if (made.exitCode !== 0) throw new Error(`tito ${args[0]} failed with exit code ${made.exitCode}: ${made.stderr}`);
}
