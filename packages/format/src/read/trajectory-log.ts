/**
 * A trajectory as it was read: every file's records, the order of turns, what is missing. Nothing is repaired and nothing is decided here.
 */

import type { Manifest } from "../record/manifest.js";
import type {
  CommitRecord,
  DeliveryRecord,
  GapRecord,
  IntentRecord,
  JournalHeader,
  LifecycleRecord,
  ParkedRecord,
  ReplayRecord,
  SealRecord,
  SegmentHeader,
  SharedPrefix,
  TurnRecord,
  UncapturedRecord,
} from "../record/records.js";
import type { ScanItem } from "./scan.js";

/** Where a record stands. `bytes` is the file's length right after it. */
export interface RecordPlace {
  file: string;
  seq: number;
  offset: number;
  bytes: number;
  digest: Uint8Array;
}

/** A turn and its place. `commit` is null when no commit frame names it (a crash between the two). */
export interface LoggedTurn {
  record: TurnRecord;
  place: RecordPlace;
  segment: number;
  boot: number;
  commit: number | null;
}

/** Something that should be there and is not, or is there and can not be read. Data, never an exception. */
export interface LogGap {
  /** `recorded`: the writer said so. `unreadable`: the frame holds but its record does not. `missing`: a commit frame names it. The rest: see {@link ScanItem}. */
  reason: "recorded" | "unreadable" | "missing" | Extract<ScanItem, { kind: "gap" }>["reason"];
  file: string;
  offset: number;
  bytes: number;
  seq: number;
  call_id: string | null;
  detail: string;
}

/** One file of a segment. A segment has several when it was parked or the sidecar was restarted. */
export interface SegmentFile {
  file: string;
  part: number;
  header: SegmentHeader;
  turns: LoggedTurn[];
  sealed: SealRecord | null;
  parked: ParkedRecord | null;
  gaps: LogGap[];
  bytes: number;
  records: number;
  head: { seq: number; digest: Uint8Array; bytes: number };
}

/** One continuity segment: its files in order, and their turns in commit order. `header` is the first file's. */
export interface SegmentLog {
  segment: number;
  header: SegmentHeader;
  files: SegmentFile[];
  turns: LoggedTurn[];
  sealed: boolean;
  parked: boolean;
  gaps: LogGap[];
}

/** One boot's journal. */
export interface JournalFile {
  file: string;
  boot: number;
  header: JournalHeader;
  sealed: SealRecord | null;
  gaps: LogGap[];
  bytes: number;
  records: number;
  head: { seq: number; digest: Uint8Array; bytes: number };
}

export interface TrajectoryLog {
  dir: string;
  trajectory_id: string;
  manifest: Manifest | null;
  /** True when the COMPLETE file is there. */
  complete: boolean;
  /** In boot order. */
  journals: JournalFile[];
  /** In order of number. */
  segments: SegmentLog[];
  /** All gaps: recorded ones, torn tails, damage, in every file. */
  gaps: LogGap[];
  /** In order of commit number. */
  commits: CommitRecord[];
  intents: Map<string, IntentRecord>;
  /** Call id → its deliveries, in order. */
  deliveries: Map<string, DeliveryRecord[]>;
  replays: ReplayRecord[];
  uncaptured: UncapturedRecord[];
  lifecycle: LifecycleRecord[];
  recorded_gaps: GapRecord[];
}

/** A turn's place in the order: a commit number, or half a step before or after the one that it is known by. */
interface Placed {
  turn: LoggedTurn;
  at: number;
}

/**
 * All turns in the order in which they were decided: by commit number. A turn without a commit frame stands before the next committed turn of its
 * file (its commit frame was damaged), or after the committed ones of its boot and those before (a crash between the two). Where the boot's journal
 * is lost, it stands right after what it builds on: a later boot may have built on it.
 */
export function turnsInCommitOrder(log: TrajectoryLog): LoggedTurn[] {
  const commits = log.segments.flatMap((segment) => segment.turns.filter((turn) => turn.commit !== null));
  const lastUntil = (boot: number): number =>
    commits.reduce((last, turn) => (turn.boot <= boot ? Math.max(last, turn.commit!) : last), 0);
  const lastOfBoot = new Map<number, number>();
  const afterBoot = (boot: number): number => {
    if (!lastOfBoot.has(boot)) lastOfBoot.set(boot, lastUntil(boot));
    return lastOfBoot.get(boot)! + 0.5;
  };
  const bySegment = new Map<number, Placed[]>();
  for (const segment of log.segments) {
    const placed: Placed[] = [];
    bySegment.set(segment.segment, placed);
    for (const file of segment.files) {
      const known = file.turns[0]?.boot !== 0;
      placed.push(
        ...placeTurns(file.turns, (turn) =>
          known
            ? afterBoot(turn.boot)
            : Math.max(placed.at(-1)?.at ?? 0, reached(bySegment, segment.header.parent)) + 0.5,
        ),
      );
    }
  }
  // equal places keep the order of segments, parts and records
  const placed = [...bySegment.values()].flat().sort((a, b) => a.at - b.at || a.turn.boot - b.turn.boot);
  return placed.map(({ turn }) => turn);
}

/** Each turn of one file with its place in the order; `loose` places those that no commit of the file follows. */
function placeTurns(turns: readonly LoggedTurn[], loose: (turn: LoggedTurn) => number): Placed[] {
  const lastCommitted = turns.findLastIndex((turn) => turn.commit !== null);
  const before = turns[lastCommitted]?.commit ?? 0;
  let next = before;
  const placed = turns
    .slice(0, lastCommitted + 1)
    .reverse()
    .map((turn) => {
      next = turn.commit ?? next;
      return { turn, at: turn.commit ?? next - 0.5 };
    });
  const after = turns.slice(lastCommitted + 1).map((turn) => ({ turn, at: Math.max(before + 0.5, loose(turn)) }));
  return [...placed.reverse(), ...after];
}

/** Where the parent's line was as long as a segment that begins with it needs. */
function reached(placed: ReadonlyMap<number, readonly Placed[]>, parent: SharedPrefix | null): number {
  const turns = parent === null ? [] : (placed.get(parent.segment) ?? []);
  const long = turns.find(({ turn: { record } }) => {
    return record.prompt_keep + record.prompt_suffix.length + record.sampled_ids.length >= parent!.tokens;
  });
  return (long ?? turns.at(-1))?.at ?? 0;
}

/** Calls that were asked and of which nothing more is known: no turn, no uncaptured record, no replay of another call. */
export function danglingCalls(log: TrajectoryLog): string[] {
  const ended = new Set<string>();
  for (const segment of log.segments) for (const turn of segment.turns) ended.add(turn.record.call_id);
  for (const record of log.uncaptured) ended.add(record.call_id);
  for (const record of log.replays) ended.add(record.replay_call_id);
  for (const gap of log.recorded_gaps) if (gap.call_id !== null) ended.add(gap.call_id);
  return [...log.intents.keys()].filter((callId) => !ended.has(callId));
}
