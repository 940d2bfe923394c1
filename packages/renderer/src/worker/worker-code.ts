/** Where the thread's code lies. The release build has another module in this place (scripts/release/stand-ins.ts). */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A file, or text that is run as a script. */
export function workerCode(): URL | { source: string } {
  const beside = new URL("./worker-entry.js", import.meta.url);
  if (existsSync(fileURLToPath(beside))) return beside;
  // From sources, the built thread; in a program of one file, that file, which starts the thread through runRendererThread.
  const built = new URL("../../dist/worker/worker-entry.js", import.meta.url);
  return import.meta.url.endsWith(".ts") && existsSync(fileURLToPath(built)) ? built : new URL(import.meta.url);
}
