/** Names and order of directories, the same on every machine. Pure. */
import { basename, dirname, relative } from "node:path";

/** Order that no locale changes. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Last two names of a directory: `job/trial`, `task/0`. Stable when the whole tree moves. */
export function shortName(dir: string): string {
  return `${basename(dirname(dir))}/${basename(dir)}`;
}

/** The directory that all of `dirs` lie in; paths in an output are relative to it. */
export function commonParent(dirs: readonly string[]): string {
  const first = dirs[0];
  if (first === undefined) return process.cwd();
  let common = dirname(first);
  for (const dir of dirs)
    while (relative(common, dir).startsWith("..") && common !== dirname(common)) common = dirname(common);
  return common;
}
