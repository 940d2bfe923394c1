/**
 * The YAML library, loaded with the first file that needs it: the defaults and flags do without. The release build has another module in this
 * place (scripts/release/stand-ins.ts).
 */
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

export function yaml(): typeof import("yaml") {
  return load("yaml") as typeof import("yaml");
}
