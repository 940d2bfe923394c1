/** The policy that a command's flags name, as `materialize` would read it. */
import { readLaneRules } from "./lane-rules.js";

/** Undefined when no flag says anything: the default policy. @throws TitoError `not_found`, `usage`. */
export async function readPolicy(flags: { policy?: string; laneRules?: string[] }) {
  const { policy: file } = flags;
  if (file === undefined && flags.laneRules === undefined) return undefined;
  const { readPolicyFile } = await import("./materialize.js");
  const { loadPolicy } = await import("@tito/materializer");
  const overrides = { laneRules: await readLaneRules(flags.laneRules) };
  return file === undefined ? loadPolicy(null, overrides) : loadPolicy(readPolicyFile(file), overrides, file);
}
