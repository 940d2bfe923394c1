/** Where the sidecar's own program lies. The release build has another module in this place (scripts/release/stand-ins.ts). */
import { fileURLToPath } from "node:url";

/** The one file that bundle.mjs makes beside this module. */
export const SIDECAR_PROGRAM = new URL("./tito-sidecar.mjs", import.meta.url);

/** How `tito run` starts a sidecar of its own, without its flags. */
export function sidecarArgv(): string[] {
  return [process.execPath, fileURLToPath(SIDECAR_PROGRAM)];
}
