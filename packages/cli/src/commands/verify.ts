import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type AnchoredHead,
  findTrajectories,
  HMAC_KEY_BYTES_MIN,
  lossInWords,
  parseAnchors,
  TitoError,
  type TrajectoryVerdict,
  type VerifyStatus,
  verifyTrajectory,
} from "@tito/format";
import type { OutputVerdict } from "@tito/materializer";
import { reportFailure, tryReading } from "../fail.js";
import { startProgress } from "../progress.js";
import { formatCount, printable } from "../table.js";
import type { Outcome, Register } from "./command.js";
import { findAbsent } from "./verify-absent.js";

interface VerifyFlags {
  anchor?: string;
  hmacKeyFile?: string;
  inputs?: string;
  json?: boolean;
}

/** `tito verify`: is it complete and intact. 0 yes · 1 incomplete · 2 damaged or tampered · 64 usage. */
export const registerVerify: Register = (program, outcome) => {
  program
    .command("verify")
    .summary("check trajectories, or an output of materialize: 0 intact · 1 incomplete · 2 damaged or tampered")
    .description(
      "Trajectories: every frame, checksum and digest chain, what the manifest and the commit frames promise, and with --anchor the heads that were kept outside.\nOutputs of materialize: lengths, spans, coverage, weights, rewards and advantages.\nExit codes: 0 complete and intact · 1 incomplete or missing · 2 damaged or tampered · 64 usage.",
    )
    .argument("<path...>", "trajectories, directories that hold some, or materialized files")
    .option("--anchor <file>", "NDJSON of chain heads kept outside the sandbox")
    .option("--hmac-key-file <file>", "key of keyed record digests")
    .option("--inputs <dir>", "for an output: parent of the trials; hashes every input again")
    .option("--json", "one JSON object a trajectory or output, one a line")
    .action(async (paths: string[], flags: VerifyFlags) => {
      const outputs = paths.filter(isOutput);
      const rest = paths.filter((path) => !outputs.includes(path));
      if (rest.length > 0) await verifyTrajectories(rest, flags, outcome);
      for (const path of outputs) await verifyOneOutput(path, flags, outcome);
    });
};

/** A file can be nothing else, and an unfinished directory of shards has its notes: what they lack as an output is told. */
function isOutput(path: string): boolean {
  const inside = ["materialized.json", "materialized.partial.jsonl"].map((name) => join(path, name));
  if ([`${path}.manifest.json`, ...inside].some((file) => existsSync(file))) return true;
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

const ABSENT_NAMES_MAX = 10;
const FINDINGS_SHOWN_MAX = 20;
const EXIT_CODES: Record<VerifyStatus, number> = { complete: 0, incomplete: 1, missing: 1, damaged: 2, tampered: 2 };

async function verifyTrajectories(paths: readonly string[], flags: VerifyFlags, outcome: Outcome): Promise<void> {
  const anchors = flags.anchor === undefined ? undefined : readAnchors(flags.anchor);
  const options = {
    ...(anchors === undefined ? {} : { anchors }),
    ...(flags.hmacKeyFile === undefined ? {} : { hmacKey: readKey(flags.hmacKeyFile) }),
  };
  const gone = paths.find((path) => !existsSync(path));
  if (gone !== undefined && (anchors ?? []).length === 0) throw new TitoError("usage", `${gone} does not exist`);
  const unread = (error: TitoError): void => {
    outcome.exitCode = Math.max(outcome.exitCode, reportFailure(error, flags.json === true));
  };
  const existing = paths.filter((path) => existsSync(path));
  const found = findTrajectories(existing, unread);
  const counts: Record<VerifyStatus, number> = { complete: 0, incomplete: 0, missing: 0, damaged: 0, tampered: 0 };
  const seen = new Set<string>();
  const progress = startProgress("verifying");
  let unreadable = 0;
  const report = (verdict: TrajectoryVerdict): void => {
    outcome.exitCode = Math.max(outcome.exitCode, EXIT_CODES[verdict.status]);
    counts[verdict.status] += 1;
    progress.finish();
    console.log(flags.json === true ? JSON.stringify(verdict) : renderTrajectory(verdict));
  };
  for (const [index, dir] of found.entries()) {
    progress.update(index, found.length);
    const verdict = tryReading(
      () => verifyTrajectory(dir, options),
      (error) => {
        unreadable += 1;
        progress.finish();
        unread(error);
      },
    );
    if (verdict === null) continue;
    seen.add(verdict.trajectory_id);
    report(verdict);
  }
  progress.finish();
  const absent = findAbsent(paths, found, seen, anchors ?? []);
  if (found.length + unreadable + absent.length === 0) throw nothingThere(paths, gone);
  for (const verdict of absent) report(verdict);
  const total = found.length + absent.length;
  if (flags.json !== true && total > 1) {
    const parts = Object.entries(counts).flatMap(([status, count]) => (count > 0 ? [`${count} ${status}`] : []));
    if (unreadable > 0) parts.push(`${unreadable} could not be read`);
    console.log(`${total} trajectories: ${parts.join(" · ")}`);
  }
  sayAbsent(absent.filter(({ head }) => head !== null).map(({ trajectory_id: id }) => id));
}

function nothingThere(paths: readonly string[], gone: string | undefined): TitoError {
  if (gone !== undefined) return new TitoError("usage", `${gone} does not exist`);
  return new TitoError("usage", `no trajectory below ${paths.join(", ")}`, {
    hint: "a trajectory is a directory with a manifest.json, a journal.seg or segments/*.seg",
  });
}

function sayAbsent(ids: readonly string[]): void {
  if (ids.length === 0) return;
  const some = ids.slice(0, ABSENT_NAMES_MAX).map(printable).join(", ");
  const more = ids.length > ABSENT_NAMES_MAX ? " …" : "";
  console.error(
    ids.length === 1
      ? `tito: 1 anchored trajectory is not here: ${some}`
      : `tito: ${ids.length} anchored trajectories are not here: ${some}${more}`,
  );
}

function readAnchors(file: string): AnchoredHead[] {
  const text = readText(file);
  const anchors = parseAnchors(text, file);
  if (anchors.length === 0 && text.trim() !== "") throw new TitoError("format_invalid", `${file}: no anchor line`);
  return anchors;
}

function readKey(file: string): Buffer {
  const key = Buffer.from(readText(file).trim(), "utf8");
  if (key.length >= HMAC_KEY_BYTES_MIN) return key;
  throw new TitoError("usage", `${file}: a key of ${key.length} bytes; at least ${HMAC_KEY_BYTES_MIN} are needed`);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new TitoError("not_found", `cannot read ${file}`, { cause });
  }
}

function renderTrajectory(one: TrajectoryVerdict): string {
  const { counts } = one;
  const head = `${one.status.padEnd(10)} ${one.dir}  ${counts.turns} turns, ${formatCount(counts.sampled_tokens)} sampled ids, ${counts.files} files, ${formatCount(counts.bytes)} bytes`;
  // A loss of ids has the first line below the head; its finding would say the same again.
  const others = one.findings.filter(({ code }) => code !== "lost_ids");
  const findings = others
    .slice(0, FINDINGS_SHOWN_MAX)
    .map(
      (finding) =>
        `  ${finding.severity}: ${finding.code} in ${finding.file} at byte ${finding.offset}, record ${finding.seq}: ${printable(finding.message)}`,
    );
  const lost = one.capture_loss === null ? [] : [`  CAPTURE LOSS: ${printable(lossInWords(one.capture_loss))}`];
  const left = others.length - findings.length + one.findings_left_off;
  const more = left > 0 ? [`  and ${left} more findings; --json lists ${one.findings.length}`] : [];
  return [head, ...lost, ...findings, ...more].join("\n");
}

async function verifyOneOutput(path: string, flags: VerifyFlags, outcome: Outcome): Promise<void> {
  const { verifyOutput } = await import("@tito/materializer");
  const verdict = await verifyOutput(path, flags.inputs === undefined ? {} : { inputs: flags.inputs });
  outcome.exitCode = Math.max(outcome.exitCode, verdict.ok ? 0 : 2);
  console.log(flags.json === true ? JSON.stringify({ path, ...verdict }) : renderOutput(path, verdict));
}

function renderOutput(path: string, one: OutputVerdict): string {
  const head = `${one.ok ? "intact" : "wrong"}  ${path}  ${one.runs} runs, ${one.samples} samples, ${formatCount(one.tokens)} tokens, weight ${one.weight}`;
  return [head, ...one.problems.map((problem) => `  ${problem}`)].join("\n");
}
