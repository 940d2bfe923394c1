/** Where the sidecar's own program lies, and which command lines it takes. */
import { fileURLToPath } from "node:url";

/** The one file that bundle.mjs makes beside this module. */
export const SIDECAR_PROGRAM = new URL("./tito-sidecar.mjs", import.meta.url);

/** True for `tito sidecar …`; help stays with the command tree, which words it. */
export function startsSidecar(args: readonly string[]): boolean {
  return args[0] === "sidecar" && !args.includes("--help") && !args.includes("-h");
}

/** How `tito run` starts a sidecar of its own, without its flags. */
export function sidecarArgv(): string[] {
  return [process.execPath, fileURLToPath(SIDECAR_PROGRAM)];
}
