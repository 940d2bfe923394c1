/** The manifest against the files: what was there at seal is there, and nothing else. */

import { MANIFEST_FILE } from "../disk/trajectory-dir.js";
import type { Manifest, ManifestFile } from "../record/manifest.js";
import type { FileEnd } from "./verify-file.js";
import type { Findings, VerifyCounts } from "./verify-types.js";

export interface ManifestCheck {
  manifest: Manifest;
  /** Without COMPLETE, a manifest is what an interrupted seal left: later boots may have added files. */
  complete: boolean;
  ends: ReadonlyMap<string, FileEnd>;
  counts: VerifyCounts;
  findings: Findings;
  /** Written by a boot before the one that sealed: what it could not sync is read, and reads well, until the power goes. */
  isEarlier: (file: string) => boolean;
}

/** Files whose end is gone and was never sure to be durable count as damaged: what they lack is nobody's edit. */
export function markCut(check: ManifestCheck): void {
  for (const listed of check.manifest.files) {
    const end = check.ends.get(listed.path);
    if (end !== undefined && mayLose(listed, check) && isCut(listed, end)) end.damaged = true;
  }
}

/** A file that was not closed in order need not be durable, not even its name. */
function mayLose(listed: ManifestFile, check: ManifestCheck): boolean {
  return listed.state === "open" || check.isEarlier(listed.path);
}

/** Less is there, and nothing else: what a disk does to the end of a file that it could not sync. */
function isCut(listed: ManifestFile, end: FileEnd): boolean {
  return end.bytes < listed.bytes || (end.bytes === listed.bytes && end.records < listed.records && end.torn);
}

export function compareManifest(check: ManifestCheck): void {
  const { manifest, complete, ends, findings } = check;
  for (const listed of manifest.files) {
    const end = ends.get(listed.path);
    const severity = mayLose(listed, check) ? "damaged" : "tampered";
    if (end === undefined) findings.addFile(severity, "file_missing", listed.path, "the manifest lists this file");
    else compareFile(listed, end, check);
  }
  if (!complete) return;
  const listed = new Set(manifest.files.map((file) => file.path));
  for (const file of ends.keys()) {
    if (!listed.has(file)) findings.addFile("tampered", "file_unlisted", file, "the manifest does not list this file");
  }
  const { status, reasons } = manifest;
  const isWhole = manifest.files.every((file) => ends.has(file.path)) && ![...ends.values()].some((end) => end.damaged);
  if (status === "incomplete" || status === "degraded") {
    const reason = reasons[0] === undefined ? "" : `: ${reasons[0]}`;
    findings.addFile("incomplete", "manifest_incomplete", MANIFEST_FILE, `sealed as ${status}${reason}`);
  } else if (isWhole) compareCounts(check);
}

function compareFile(listed: ManifestFile, end: FileEnd, check: ManifestCheck): void {
  const { findings } = check;
  const said = `${listed.bytes} bytes and ${listed.records} records`;
  if (mayLose(listed, check) && isCut(listed, end)) {
    const message = `the manifest says ${said}; there are ${end.bytes} bytes and ${end.records} records: its end was never durable`;
    findings.addFile("damaged", "manifest_mismatch", listed.path, message);
  } else if (listed.bytes !== end.bytes || (listed.records !== end.records && !end.damaged)) {
    const message = `the manifest says ${said}; there are ${end.bytes} bytes and ${end.records} records`;
    findings.addFile("tampered", "manifest_mismatch", listed.path, message);
  } else if (end.head !== null && !end.damaged && !isHead(listed, end.head)) {
    findings.addFile(
      "tampered",
      "manifest_mismatch",
      listed.path,
      "the chain ends in another record than the manifest says",
    );
  }
}

function isHead({ head }: ManifestFile, { seq, digest }: { seq: number; digest: Uint8Array }): boolean {
  return head.seq === seq && head.digest === Buffer.from(digest).toString("hex");
}

function compareCounts({ manifest, counts, findings }: ManifestCheck): void {
  const { turns, sampled_tokens, calls } = manifest.counts;
  if (turns !== counts.turns || sampled_tokens !== counts.sampled_tokens || calls !== counts.calls) {
    const message = `it counts ${calls} calls, ${turns} turns, ${sampled_tokens} sampled tokens; the files hold ${counts.calls}, ${counts.turns}, ${counts.sampled_tokens}`;
    findings.addFile("tampered", "manifest_mismatch", MANIFEST_FILE, message);
  }
}
