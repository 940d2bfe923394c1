/**
 * The state of one trajectory. Calls run side by side; only deciding and appending are one after another, in a critical section
 * that never spans an engine call or a disk sync.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { createState, type EngineState, restore, retryOf, setDelivery } from "@tito/continuity";
import {
  createTrajectoryWriter,
  type Disk,
  lossInWords,
  type SealAnswer,
  TitoError,
  type TrajectoryWriter,
  turnsInCommitOrder,
} from "@tito/format";
import type { ModelFacts } from "@tito/renderer";
import { redactConfig, type SidecarConfig } from "../config/config.js";
import type { Log } from "../config/log.js";
import { keyDigest } from "../gate/gate.js";
import { LiveCall } from "./live-call.js";
import { type Orphan, ReplayTable } from "./replay.js";
import { endingOf, TurnLog } from "./turn-log.js";

/** How many calls are remembered that a later request may turn out to repeat. */
const EARLIER_CALLS_MAX = 64;
const ABORT_WAIT_MS = 1000;

export interface TrajectoryOptions {
  config: SidecarConfig;
  /** What the renderer bundle tells of the model, for the record. */
  model: ModelFacts | null;
  trajectoryId: string;
  /** What the harness sends. */
  apiKey: string;
  writerVersion: string;
  hmacKey: Uint8Array | null;
  disk: Disk;
  onAnchor(line: string): void;
  log: Log;
}

interface EarlierCall {
  call_id: string;
  body_key: string;
  retry_count: number | null;
  idempotency_key: string | null;
  delivery: "delivered" | "failed" | "unknown" | "in_flight";
}

export class Trajectory extends TurnLog {
  readonly replays = new ReplayTable();
  phase: "open" | "sealing" | "sealed" = "open";
  private readonly calls = new Set<LiveCall>();
  /** Requests that wait for the sample of another call. */
  private readonly waiting = new Set<Promise<unknown>>();
  private readonly earlier: EarlierCall[] = [];
  private readonly lossesTold = new Set<string>();
  private nextCall = 1;
  private readonly callPrefix = randomBytes(4).toString("hex");

  private constructor(
    readonly id: string,
    readonly config: SidecarConfig,
    readonly apiKey: string,
    readonly keyDigest: Buffer,
    writer: TrajectoryWriter,
    continuity: EngineState,
    readonly log: Log,
  ) {
    super(writer, continuity, config.harness);
  }

  /** Opens a trajectory, new or left by an earlier process. @throws TitoError `cannot_write`, `already_exists`, `trajectory_sealed`. */
  static async open(options: TrajectoryOptions): Promise<Trajectory> {
    const { config, trajectoryId, log } = options;
    const writer = await createTrajectoryWriter({
      out: config.out,
      trajectoryId,
      runId: config.runId,
      groupId: config.groupId,
      trialId: config.trialId,
      attempt: config.attempt,
      metadata: config.metadata,
      configJson: redactConfig(config, options.model).json,
      writerVersion: options.writerVersion,
      durability: config.durability,
      disk: options.disk,
      onAnchor: (head) => options.onAnchor(JSON.stringify(head)),
      ...(options.hmacKey === null ? {} : { hmacKey: Uint8Array.from(options.hmacKey) }),
    });
    const continuity = recoverContinuity(writer, log);
    const trajectory = new Trajectory(
      trajectoryId,
      config,
      options.apiKey,
      keyDigest(options.apiKey),
      writer,
      continuity,
      log,
    );
    for (const { record } of writer.recovered === null ? [] : turnsInCommitOrder(writer.recovered.released))
      trajectory.endings.set(record.call_id, endingOf(record));
    trajectory.recoverLoss();
    writer.forgetRecovered();
    return trajectory;
  }

  /** What earlier boots lost counts too. */
  private recoverLoss(): void {
    const { recovered } = this.writer;
    if (recovered === null) return;
    for (const { record } of turnsInCommitOrder(recovered.released)) this.loss.turn(record);
    for (const record of recovered.log.uncaptured) this.loss.uncaptured(record);
  }

  get degraded(): string | null {
    const { state } = this.writer;
    return state.kind === "ok" ? null : state.reason;
  }

  /** Calls that are not finished. */
  get inFlight(): number {
    return this.calls.size;
  }

  newCallId(): string {
    return `${this.callPrefix}-${this.nextCall++}`;
  }

  startCall(onOrphan: (orphan: Orphan) => void): LiveCall {
    const call = new LiveCall(this.newCallId(), this.config.orphanGraceMs, onOrphan);
    this.calls.add(call);
    return call;
  }

  endCall(call: LiveCall): void {
    this.calls.delete(call);
    call.finished();
  }

  /** Sealing waits for this work too. */
  async hold<T>(work: Promise<T>): Promise<T> {
    this.waiting.add(work);
    try {
      return await work;
    } finally {
      this.waiting.delete(work);
    }
  }

  /** Which earlier call a request repeats, if there is evidence. */
  retryOf(key: string, headers: ReadonlyMap<string, readonly string[]>): string | null {
    const count = Number(headers.get("x-stainless-retry-count")?.[0] ?? Number.NaN);
    const facts = {
      body_key: key,
      retry_count: Number.isInteger(count) ? count : null,
      idempotency_key: headers.get("idempotency-key")?.[0] ?? null,
    };
    return retryOf(facts, this.earlier)?.call_id ?? null;
  }

  /** A request is being served under this call id. */
  noteCall(key: string, callId: string, headers: ReadonlyMap<string, readonly string[]>): void {
    const idempotency = headers.get("idempotency-key")?.[0] ?? null;
    this.earlier.push({
      call_id: callId,
      body_key: key,
      retry_count: null,
      idempotency_key: idempotency,
      delivery: "in_flight",
    });
    if (this.earlier.length > EARLIER_CALLS_MAX) this.earlier.shift();
  }

  noteDelivery(callId: string, outcome: "delivered" | "failed"): void {
    setDelivery(this.continuity, callId, outcome);
    const call = this.earlier.find((one) => one.call_id === callId);
    if (call !== undefined) call.delivery = outcome;
  }

  /** A loss is told at once: the first of each kind, and whenever the number of calls that lost something has doubled. */
  noteLoss(callId: string, causes: readonly string[]): void {
    const { loss } = this.loss;
    if (causes.length === 0 || loss === null) return;
    const fresh = causes.some((cause) => !this.lossesTold.has(cause));
    for (const cause of causes) this.lossesTold.add(cause);
    const calls = loss.damaged_turns + loss.calls_without_ids;
    if (!fresh && (calls & (calls - 1)) !== 0) return;
    this.log("warn", "capture_loss", { call: callId, causes: causes.join(", "), so_far: lossInWords(loss) });
  }

  /** Refuses new calls, waits for those in flight as long as it is allowed to, aborts the rest, and closes the files for ever, once `idClosed` has come. */
  async seal(reason: string, timeoutMs: number, idClosed: Promise<void> = Promise.resolve()): Promise<SealAnswer> {
    this.phase = "sealing";
    await this.settle(timeoutMs);
    await idClosed;
    // From here on the writer takes nothing more.
    this.phase = "sealed";
    const { loss } = this.loss;
    if (loss !== null) this.log("warn", "sealed_with_loss", { trajectory: this.id, lost: lossInWords(loss) });
    return this.writer.seal({ reason, drift: Object.fromEntries(this.drift) });
  }

  /** Aborts what is in flight at once. */
  abortCalls(): void {
    for (const call of this.calls) call.abort("aborted_by_seal");
  }

  private async settle(timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([this.allDone(), timeout]);
    clearTimeout(timer);
    this.abortCalls();
    // What was sampled is recorded at once; a harness that does not read the end of its answer is not waited for.
    await Promise.race([this.allDone(), wait(ABORT_WAIT_MS, undefined, { ref: false })]);
  }

  private async allDone(): Promise<void> {
    const waiting = [...this.waiting].map((work) => work.catch(() => undefined));
    await Promise.all([...[...this.calls].map((call) => call.done), ...waiting]);
  }
}

/** May a new call begin? @throws TitoError `trajectory_sealed`, or `capture_degraded` where the user did not choose to go on without capture. */
export function checkOpen(trajectory: Trajectory): void {
  if (trajectory.phase !== "open") throw sealed(trajectory);
  checkNotDegraded(trajectory);
}

/** May a request that came before the seal have an answer that is on record? @throws TitoError as `checkOpen` does. */
export function checkNotSealed(trajectory: Trajectory): void {
  if (trajectory.phase === "sealed") throw sealed(trajectory);
  checkNotDegraded(trajectory);
}

function sealed(trajectory: Trajectory): TitoError {
  return new TitoError("trajectory_sealed", `trajectory ${trajectory.id} is sealed`);
}

function checkNotDegraded(trajectory: Trajectory): void {
  const { degraded } = trajectory;
  if (degraded === null || trajectory.config.onUncaptured === "flag") return;
  throw new TitoError("capture_degraded", `capture is degraded: ${degraded}`, {
    hint: "free the disk and start a new trajectory",
  });
}

function recoverContinuity(writer: TrajectoryWriter, log: Log): EngineState {
  const { recovered } = writer;
  if (recovered === null) return createState();
  const headers = new Map(recovered.log.segments.map((segment) => [segment.segment, segment.header]));
  const turns = turnsInCommitOrder(recovered.released).map((turn, index) => {
    // Numbered anew: a turn whose commit frame was lost has none, and the next boot gave the number that it would have had to another.
    const commit = index + 1;
    const header = headers.get(turn.segment)!;
    const continues = header.continues?.segment === turn.segment ? null : header.continues;
    const delivery = recovered.log.deliveries.get(turn.record.call_id)?.at(-1)?.outcome ?? "unknown";
    return { segment: turn.segment, parent: header.parent, continues, commit, delivery, record: turn.record } as const;
  });
  const { state, skipped } = restore(turns);
  for (const turn of skipped) log("warn", "not_recovered", { call: turn.call_id, why: turn.why });
  state.next_segment = Math.max(state.next_segment, writer.nextSegment);
  log("info", "recovered", { turns: state.turns.size, segments: state.segments.size });
  return state;
}
