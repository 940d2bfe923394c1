/**
 * A random life of one trajectory: several boots, each on a disk that fails in its own way, ended by a seal, a kill or a power cut. What was released is
 * remembered, as a harness and an anchor's keeper would, and held against what is on disk after every step.
 */
import fs from "node:fs";
import path from "node:path";
import {
  type AnchoredHead,
  type CommitInput,
  type Durability,
  findTrajectories,
  promptDigest,
  readTrajectory,
  rebuildLines,
  TitoError,
  type TrajectoryVerdict,
  type TrajectoryWriter,
  turnsInCommitOrder,
  verifyTrajectory,
} from "@tito/format";
import { type DiskCall, type DiskFault, FaultDisk } from "./fault-disk.js";
import { seededRandom } from "./seeded-random.js";
import { concat, ids, intent, openWriter, turn } from "./turns.js";

export interface HistoryReport {
  /** What happened, in order: for the message of a failure. */
  steps: string[];
  /** Broken promises; empty when all is well. */
  violations: string[];
  boots: number;
  released: number;
  sealed: boolean;
  /** Heads that a power cut must not touch. */
  anchors: AnchoredHead[];
  /** Everything that was handed out, also by boots that did not sync. */
  allAnchors: AnchoredHead[];
  keyed: boolean;
}

/** The key that keyed histories are signed with. */
export const historyKey = (): Buffer => Buffer.alloc(32, 7);

interface Expected {
  prompt: Int32Array;
  sampled: Int32Array;
  /** Written by a boot that does not sync: the power may take it. */
  weak: boolean;
}

const ERRORS: readonly DiskFault["error"][] = ["EIO", "EIO", "ENOSPC", "EDQUOT", "EMFILE", "EAGAIN", "EINTR", "short"];
const CALLS: readonly (readonly DiskCall[] | undefined)[] = [
  undefined,
  undefined,
  ["fdatasync"],
  ["fdatasync", "fsync"],
  ["writev"],
  ["open"],
  ["close", "readdir", "fstat", "lstat"],
  ["rename", "unlink", "fsync"],
];

/** Lives one life in `out` and answers what came of it. */
export async function liveHistory(out: string, seed: number): Promise<HistoryReport> {
  const history = new History(out, seed);
  await history.run();
  return history.report;
}

class History {
  readonly report: HistoryReport;
  private readonly random: () => number;
  private readonly dir: string;
  private readonly released = new Map<string, Expected>();
  private readonly refused = new Set<string>();
  private disk = new FaultDisk();
  private calls = 0;

  constructor(
    private readonly out: string,
    private readonly seed: number,
  ) {
    this.random = seededRandom(seed);
    this.dir = path.join(out, "t1");
    const keyed = this.random() < 0.5;
    this.report = {
      steps: [],
      violations: [],
      boots: 0,
      released: 0,
      sealed: false,
      anchors: [],
      allAnchors: [],
      keyed,
    };
  }

  async run(): Promise<void> {
    const boots = 1 + Math.floor(this.random() * 4);
    for (let boot = 1; boot <= boots && !this.report.sealed; boot++) {
      await this.boot(boot === boots);
      this.checkDisk();
      if (!this.report.sealed || this.random() < 0.5) this.endOfProcess();
    }
    this.report.released = this.released.size;
  }

  private step(text: string): void {
    this.report.steps.push(text);
  }

  private violate(what: string): void {
    this.report.violations.push(`${this.report.steps.join(" → ")}: ${what}`);
  }

  private pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)]!;
  }

  private nextFault(): DiskFault | null {
    const kind = this.random();
    if (kind < 0.35) return null;
    const calls = this.pick(CALLS);
    const at = 1 + Math.floor(this.random() * this.random() * (calls === undefined ? 160 : 40));
    const more = kind < 0.6 ? {} : kind < 0.8 ? { times: 2 + Math.floor(this.random() * 8) } : { forever: true };
    return { error: this.pick(ERRORS), at, ...(calls === undefined ? {} : { calls }), ...more };
  }

  private async boot(last: boolean): Promise<void> {
    this.report.boots++;
    const durability: Durability = this.random() < 0.8 ? "fsync" : "write";
    const fault = this.nextFault();
    this.disk.setFault(fault);
    this.step(`boot ${durability} ${fault === null ? "" : JSON.stringify(fault)}`);
    const onAnchor = (head: AnchoredHead): void => this.noteAnchor(head, durability);
    const options = { disk: this.disk, durability, onAnchor, ...(this.report.keyed ? { hmacKey: historyKey() } : {}) };
    let writer: TrajectoryWriter;
    try {
      writer = await openWriter(this.out, options);
    } catch (error) {
      if (!TitoError.is(error)) this.violate(`opening threw ${String(error)}`);
      this.step(`refused: ${(error as Error).message}`);
      return;
    }
    if (this.hidesRefusals(writer)) {
      // the disk took no word about the turns that it could not sync, and works again: the one thing that nobody can know
      this.step("nothing tells what was refused");
      writer.abandon();
      return;
    }
    const lines = knownLines(writer);
    const batches = Math.floor(this.random() * 5);
    for (let i = 0; i < batches; i++) await this.batch(writer, lines, durability);
    const ending = this.random();
    if (last || ending < 0.3) await this.seal(writer);
    else if (ending < 0.5) {
      writer.abandon();
      this.step("abandoned");
    } else if (ending < 0.8) {
      // dies with calls in flight
      for (let i = 0; i < 2; i++) void this.call(writer, lines, durability);
      await Promise.resolve();
    }
  }

  private hidesRefusals({ recovered }: TrajectoryWriter): boolean {
    const calls = recovered === null ? [] : turnsInCommitOrder(recovered.released).map((item) => item.record.call_id);
    return calls.some((callId) => this.refused.has(callId));
  }

  private noteAnchor(head: AnchoredHead, durability: Durability): void {
    this.report.allAnchors.push(head);
    if (durability === "fsync") this.report.anchors.push(head);
  }

  private async seal(writer: TrajectoryWriter): Promise<void> {
    try {
      const { manifest } = await writer.seal({ reason: "test" });
      this.report.sealed = true;
      this.step(`sealed ${manifest.status}`);
    } catch (error) {
      if (!TitoError.is(error)) this.violate(`the seal threw ${String(error)}`);
      this.step("seal failed");
    }
  }

  /** Some calls at the same time; each is placed before the next, as the sidecar does. */
  private async batch(writer: TrajectoryWriter, lines: Map<number, Int32Array>, durability: Durability): Promise<void> {
    const running: Promise<void>[] = [];
    const count = 1 + Math.floor(this.random() * 4);
    for (let i = 0; i < count; i++) {
      // what the next upstream request carries
      if (this.random() < 0.3) this.noteAnchor(writer.head(), durability);
      running.push(this.call(writer, lines, durability));
      await null;
      await null;
    }
    await Promise.all(running);
  }

  private async call(writer: TrajectoryWriter, lines: Map<number, Int32Array>, durability: Durability): Promise<void> {
    const callId = `b${this.report.boots}-${++this.calls}`;
    writer.writeIntent(intent(callId));
    const { input, prompt, sampled, segment } = this.nextTurn(writer, lines, callId);
    const committed = writer.commitTurn(input);
    let refused = false;
    committed.catch(() => {
      refused = true;
    });
    await null;
    if (!refused) lines.set(segment, concat(prompt, sampled));
    try {
      await committed;
    } catch (error) {
      if (!TitoError.is(error)) this.violate(`a commit threw ${String(error)}`);
      this.refused.add(callId);
      return;
    }
    const expected: Expected = { prompt, sampled, weak: durability === "write" };
    this.released.set(callId, expected);
    writer.writeDelivery({ call_id: callId, outcome: "delivered", bytes: 1, status: 200, detail: null, at_ms: 1 });
  }

  private nextTurn(writer: TrajectoryWriter, lines: ReadonlyMap<number, Int32Array>, callId: string) {
    const known = [...lines.keys()];
    const kind = this.random();
    const added = ids(1000 * this.calls, 1 + Math.floor(this.random() * 40));
    const sampled = ids(1000 * this.calls + 500, 1 + Math.floor(this.random() * 20));
    let segment = writer.nextSegment;
    let input: Omit<CommitInput, "turn">;
    let kept: Int32Array = new Int32Array(0);
    if (known.length === 0 || kind < 0.15) input = { open: { segment, parent: null } };
    else if (kind < 0.6) {
      segment = this.pick(known);
      kept = lines.get(segment)!;
      input = { segment };
    } else {
      const parent = this.pick(known);
      const line = lines.get(parent)!;
      kept = line.slice(0, kind < 0.8 ? line.length : 1 + Math.floor(this.random() * line.length));
      input = { open: { segment, parent: { segment: parent, tokens: kept.length } } };
    }
    const prompt = concat(kept, added);
    return { segment, prompt, sampled, input: { ...input, turn: turn(callId, prompt, sampled, kept.length) } };
  }

  /** The process is gone; often the power too. */
  private endOfProcess(): void {
    this.disk = this.disk.kill();
    markLocksDead(this.dir);
    const kind = this.random();
    if (kind < 0.4) {
      this.step("killed");
      return;
    }
    if (kind < 0.55) {
      this.disk.dropCleanPages();
      this.step("killed, memory reclaimed");
    } else {
      this.disk.cutPower(this.seed * 31 + this.report.boots);
      this.step("power cut");
    }
    for (const [callId, expected] of this.released) if (expected.weak) this.released.delete(callId);
    this.checkDisk();
  }

  private checkDisk(): void {
    if (!fs.existsSync(this.dir) || findTrajectories([this.dir]).length === 0) {
      if (this.released.size > 0) this.violate("no trajectory is there");
      return;
    }
    this.checkReleased();
    this.checkVerdicts();
  }

  private checkReleased(): void {
    const log = readTrajectory(this.dir, { mode: "salvage" });
    const lines = rebuildLines(log);
    const found = new Map(turnsInCommitOrder(log).map((item) => [item.record.call_id, item]));
    for (const [callId, { prompt, sampled }] of this.released) {
      const item = found.get(callId);
      if (item === undefined) this.violate(`${callId} was released and is lost`);
      else if (lines.statusOf(item) !== "exact") this.violate(`${callId} was released and is ${lines.statusOf(item)}`);
      else if (Buffer.compare(promptDigest(lines.checkpointIds(item)), promptDigest(concat(prompt, sampled))) !== 0)
        this.violate(`${callId} was released with other ids`);
    }
  }

  private checkVerdicts(): void {
    const { anchors, allAnchors, keyed } = this.report;
    const key = keyed ? { hmacKey: historyKey() } : {};
    const strong = verifyTrajectory(this.dir, { anchors });
    for (const finding of strong.findings)
      if (finding.code === "anchor_missing") this.violate(`an anchored head is missing: ${JSON.stringify(finding)}`);
    for (const verdict of [
      strong,
      verifyTrajectory(this.dir),
      verifyTrajectory(this.dir, { anchors: allAnchors, ...key }),
    ])
      this.expectHonest(verdict);
  }

  private expectHonest(verdict: TrajectoryVerdict): void {
    for (const finding of verdict.findings)
      if (finding.severity === "tampered") this.violate(`called tampered: ${JSON.stringify(finding)}`);
  }
}

/** The lines that the next turns may build on: what an earlier boot left. */
function knownLines(writer: TrajectoryWriter): Map<number, Int32Array> {
  const lines = new Map<number, Int32Array>();
  for (const { segment } of writer.recovered?.log.segments ?? []) {
    const line = writer.recovered!.lines.line(segment);
    if (line !== null) lines.set(segment, line);
  }
  return lines;
}

/** The locks name this process, which lives on: as after a kill, they name one that does not. */
function markLocksDead(dir: string): void {
  if (!fs.existsSync(dir)) return;
  for (const name of fs.readdirSync(dir)) {
    if (/^writer-\d+\.lock$/.test(name)) fs.writeFileSync(path.join(dir, name), "999999999 1\n");
  }
}
