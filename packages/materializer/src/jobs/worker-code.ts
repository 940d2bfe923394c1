/** Where a worker thread's code lies. The release build has another module in this place (scripts/release/stand-ins.ts). */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The built worker; seen from `src` and from `dist` alike. */
const WORKER_FILE = fileURLToPath(new URL("../../dist/worker.js", import.meta.url));

/** A file, or text that is run as a script (`eval`); null where nothing is built. */
export function workerCode(): { code: string; eval: boolean } | null {
  return existsSync(WORKER_FILE) ? { code: WORKER_FILE, eval: false } : null;
}
