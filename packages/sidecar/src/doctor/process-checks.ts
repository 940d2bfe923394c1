/** What this process has: a Node that is new enough, descriptors, a clock. */
import { readFileSync } from "node:fs";
import { type Finding, finding } from "./finding.js";

const NODE_MAJOR_MIN = 20;

export function judgeNode(version: string): Finding {
  const major = Number(version.split(".")[0]);
  if (major >= NODE_MAJOR_MIN) return finding("node", "ok", `Node ${version}`);
  return finding("node", "failure", `Node ${version} is too old`, `install Node ${NODE_MAJOR_MIN} or later`);
}

/** 64 segment files, the journal, directories, the ballast, and two sockets a call. */
const DESCRIPTORS_MIN = 128;
const DESCRIPTORS_GOOD = 1024;

export function judgeOpenFiles(limit: number | null): Finding {
  if (limit === null) return finding("open_files", "skipped", "the limit can only be read on Linux");
  const message = `${limit === Number.POSITIVE_INFINITY ? "no limit" : `at most ${limit} open files`}`;
  if (limit < DESCRIPTORS_MIN) {
    return finding(
      "open_files",
      "failure",
      message,
      `ulimit -n ${DESCRIPTORS_GOOD}: a trajectory may need 70 descriptors, a call two`,
    );
  }
  if (limit < DESCRIPTORS_GOOD) {
    return finding(
      "open_files",
      "warning",
      message,
      `ulimit -n ${DESCRIPTORS_GOOD}: many calls at once, or a gateway, need more`,
    );
  }
  return finding("open_files", "ok", message);
}

/** Soft limit of this process; null where there is no /proc. */
export function openFileLimit(): number | null {
  try {
    const line = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    if (line === null) return null;
    return line[1] === "unlimited" ? Number.POSITIVE_INFINITY : Number(line[1]);
  } catch {
    return null;
  }
}

/** Before this nothing was recorded: a clock that is behind it was never set. */
const CLOCK_FROM_MS = Date.UTC(2025, 0, 1);
const SKEW_MS_MAX = 2_000;

/** `fileMs`: what the file system says of a file that was written at `nowMs`; null when there is none. */
export function judgeClock(nowMs: number, fileMs: number | null): Finding {
  const shown = new Date(nowMs).toISOString();
  if (nowMs < CLOCK_FROM_MS) {
    return finding("clock", "warning", `the clock says ${shown}`, "set it: records carry these times");
  }
  if (fileMs !== null && Math.abs(nowMs - fileMs) > SKEW_MS_MAX) {
    const skew = ((nowMs - fileMs) / 1000).toFixed(1);
    return finding("clock", "warning", `the clock is ${skew} s ahead of the file system's`, "set both from one source");
  }
  return finding("clock", "ok", shown);
}
