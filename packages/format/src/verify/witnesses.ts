/**
 * What a trajectory says twice, compared: prompt digests, references between records, counts, headers and manifest. Pure: works on a trajectory as it was read.
 * docs/format.md#witnesses lists the same facts, field by field, and those that nothing else says.
 */

import { Tally } from "../read/tally.js";
import type { JournalFile, LoggedTurn, SegmentFile, TrajectoryLog } from "../read/trajectory-log.js";
import { sha256 } from "../record/digest.js";
import type { Manifest } from "../record/manifest.js";
import type { JournalHeader, SegmentHeader } from "../record/records.js";
import { type Contradiction, LOST, type Report } from "./contradiction.js";
import { checkTurns, type TurnIds } from "./witnesses-turns.js";

/**
 * Everything in which the records of a trajectory contradict each other, or its manifest. Checksums, chains and heads are not looked at.
 * `idsOf` is asked in commit order: the log itself needs no more of a turn's ids than how many there are.
 */
export function findContradictions(log: TrajectoryLog, idsOf: (turn: LoggedTurn) => TurnIds): Contradiction[] {
  const found: Contradiction[] = [];
  const report: Report = (code, place, message, more) =>
    void found.push({ code, place, message, lossExplains: more?.lossExplains ?? false });
  for (const journal of log.journals) checkJournal(journal, report);
  checkSegmentHeaders(log, report);
  checkTurns(log, idsOf, report);
  checkCommitOrder(log, report);
  checkCalls(log, report);
  if (log.manifest !== null && log.complete) checkManifest(log, log.manifest, report);
  return found;
}

const start = (file: string): Contradiction["place"] => ({ file, offset: 0, seq: 0 });

function checkJournal({ file, header }: JournalFile, report: Report): void {
  if (!same(sha256(header.config_json), header.config_sha256))
    report("record_mismatch", start(file), "config_sha256 is not the digest of config_json");
}

/** A segment file repeats what its boot's journal says, and says where its line begins. */
function checkSegmentHeaders(log: TrajectoryLog, report: Report): void {
  const bootOf = new Map<string, JournalHeader>();
  for (const { header } of log.journals) if (!bootOf.has(header.boot_id)) bootOf.set(header.boot_id, header);
  const reasonOf = new Map(log.journals.map(({ header, sealed }) => [header.boot_id, sealed?.reason]));
  for (const segment of log.segments) {
    let before: SegmentFile | null = null;
    for (const part of segment.files) {
      const { header, file } = part;
      const journal = bootOf.get(header.boot_id);
      if (journal !== undefined) compareWithJournal(header, journal, file, report);
      const reason = reasonOf.get(header.boot_id);
      if (part.sealed !== null && reason !== undefined && part.sealed.reason !== reason)
        report(
          "record_mismatch",
          start(file),
          `sealed because of ${part.sealed.reason}, its boot's journal of ${reason}`,
        );
      checkContinues(part, before, report);
      before = part;
    }
  }
}

function compareWithJournal(header: SegmentHeader, journal: JournalHeader, file: string, report: Report): void {
  for (const key of ["format_version", "writer_version"] as const) {
    if (header[key] !== journal[key])
      report("record_mismatch", start(file), `${key} is ${header[key]}, its boot's journal says ${journal[key]}`);
  }
  if (!same(header.config_sha256, journal.config_sha256))
    report("record_mismatch", start(file), "config_sha256 is another than its boot's journal says");
}

/** A stand-in for a header that is lost has no boot. */
function checkContinues(part: SegmentFile, before: SegmentFile | null, report: Report): void {
  const { header, file } = part;
  if (header.boot_id === "") return;
  const { continues } = header;
  const wrong = (message: string): void => report("record_mismatch", start(file), message);
  if (part.part > 1 && continues?.segment !== header.segment) wrong("a next part that does not continue its segment");
  if (part.part > 1 && header.parent !== null) wrong("a next part that names a parent");
  if (continues === null || before === null || before.header.boot_id === "") return;
  const own = before.header.boot_id === header.boot_id ? "parked" : "recovered";
  if (continues.why !== own) wrong(`it says that its segment was ${continues.why}; the part before it says ${own}`);
}

/** Numbers ascend, each once; a commit of one boot names no file of another. */
function checkCommitOrder(log: TrajectoryLog, report: Report): void {
  let last = -1;
  for (const { commit, file, seq, bytes, call_id } of log.commits) {
    if (commit === last)
      report("record_mismatch", { file, seq, offset: bytes }, `commit ${commit} is given twice (call ${call_id})`);
    last = commit;
  }
  for (const segment of log.segments) {
    for (const file of segment.files) {
      let before = 0;
      for (const { commit, place } of file.turns) {
        if (commit === null) continue;
        if (commit <= before) report("record_mismatch", place, `commit ${commit} follows commit ${before} in its file`);
        before = commit;
      }
    }
  }
}

/** What is told of a call is told of one that was asked. Only where no gap says that something could not be recorded. */
function checkCalls(log: TrajectoryLog, report: Report): void {
  if (log.gaps.length > 0) return;
  const turns = log.segments.flatMap((segment) => segment.turns);
  const known = new Set<string>([...log.intents.keys(), ...turns.map((turn) => turn.record.call_id)]);
  for (const { call_id } of log.uncaptured) known.add(call_id);
  const wrong = (what: string, callId: string): void =>
    report(
      "record_mismatch",
      start(log.journals[0]?.file ?? "journal.seg"),
      `${what} names call ${callId}, which nobody asked`,
      LOST,
    );
  for (const { call_id, replay_call_id } of log.replays) {
    if (!known.has(call_id)) wrong("a replay", call_id);
    known.add(replay_call_id);
  }
  for (const callId of log.deliveries.keys()) if (!known.has(callId)) wrong("a delivery", callId);
  const twice = new Set<string>();
  for (const { record, place } of turns) {
    if (twice.has(record.call_id)) report("record_mismatch", place, `call ${record.call_id} has two turns`, LOST);
    twice.add(record.call_id);
  }
}

/** The manifest repeats the last journal's header and counts what is there. */
function checkManifest(log: TrajectoryLog, manifest: Manifest, report: Report): void {
  const wrong = (message: string): void => report("manifest_mismatch", start("manifest.json"), message, LOST);
  const last = log.journals.at(-1);
  if (last === undefined) return;
  compareHeader(manifest, last.header, wrong);
  const { head } = manifest;
  const digest = Buffer.from(last.head.digest).toString("hex");
  if (head.boot !== last.boot || head.seq !== last.head.seq || head.bytes !== last.head.bytes || head.digest !== digest)
    wrong("its head is not that of the last journal");
  if (last.sealed !== null && last.sealed.reason !== manifest.seal_reason)
    wrong(`seal_reason is ${manifest.seal_reason}, the journal's seal says ${last.sealed.reason}`);
  compareStates(log, manifest, wrong);
  if (manifest.status === "degraded" || log.gaps.length > 0) return;
  compareTally(log, manifest, wrong);
}

function compareHeader(manifest: Manifest, header: JournalHeader, wrong: (message: string) => void): void {
  for (const key of [
    "format_version",
    "writer_version",
    "trajectory_id",
    "run_id",
    "group_id",
    "trial_id",
    "attempt",
  ] as const) {
    if (manifest[key] !== header[key]) wrong(`${key} is ${manifest[key]}, the last journal says ${header[key]}`);
  }
  if (spelled(manifest.metadata) !== spelled(header.metadata)) wrong("metadata is not what the last journal says");
}

function spelled(metadata: Record<string, string>): string {
  return JSON.stringify(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function compareStates(log: TrajectoryLog, manifest: Manifest, wrong: (message: string) => void): void {
  const states = new Map<string, string>();
  for (const { file, sealed } of log.journals) states.set(file, sealed === null ? "open" : "sealed");
  for (const { file, sealed, parked } of log.segments.flatMap((segment) => segment.files))
    states.set(file, sealed !== null ? "sealed" : parked !== null ? "parked" : "open");
  for (const { path, state } of manifest.files) {
    const found = states.get(path);
    // what could not be made durable is listed as open, although its closing record may be read
    if (found !== undefined && state !== found && state !== "open")
      wrong(`${path} is listed as ${state} and is ${found}`);
  }
}

function compareTally(log: TrajectoryLog, manifest: Manifest, wrong: (message: string) => void): void {
  const tally = new Tally(log);
  const counts = tally.counts(log.segments.length, log.journals.at(-1)!.boot);
  for (const key of ["uncaptured", "lost_calls", "dangling_calls", "gaps", "segments", "boots"] as const) {
    if (manifest.counts[key] !== counts[key])
      wrong(`it counts ${manifest.counts[key]} ${key}; the files hold ${counts[key]}`);
  }
  const { status } = tally.verdict(null);
  if (manifest.status !== status) wrong(`it says ${manifest.status}, the files say ${status}`);
  compareDrift(log, manifest, wrong);
}

/** How often each cause opened a segment. A manifest whose writer was given no figures has none. */
function compareDrift(log: TrajectoryLog, { drift }: Manifest, wrong: (message: string) => void): void {
  if (Object.keys(drift).length === 0 || log.journals.length > 1) return;
  const counted = new Map<string, number>();
  for (const { record } of log.segments.flatMap((segment) => segment.turns)) {
    const { kind, reason, evidence } = record.decision;
    if (kind === "append") continue;
    const cause = evidence.cause ?? reason;
    counted.set(cause, (counted.get(cause) ?? 0) + 1);
  }
  const names = new Set([...counted.keys(), ...Object.keys(drift)]);
  for (const name of names) {
    const [said, found] = [drift[name] ?? 0, counted.get(name) ?? 0];
    if (said !== found) wrong(`it counts ${said} times ${name}; the turns say ${found}`);
  }
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
