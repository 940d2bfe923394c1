/** Run ids that `tito run` makes when no flag gives one. */
import { randomBytes } from "node:crypto";

/** A fresh id: `r-` and 18 hexadecimal digits. */
export function makeRunId(): string {
  return `r-${randomBytes(9).toString("hex")}`;
}

/** True for an id of the form that {@link makeRunId} makes: it names a run, and does not say which others belong to it. */
export function isMadeRunId(id: string): boolean {
  return /^r-[0-9a-f]{18}$/.test(id);
}
