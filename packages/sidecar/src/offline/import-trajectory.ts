/** Puts the calls of one trajectory on record, in the order of the log, as live calls are: decide, append, seal. */
import { createState, setDelivery } from "@tito/continuity";
import { createTrajectoryWriter, type SealAnswer, type TrajectoryWriter } from "@tito/format";
import { engineTurn, laneOf } from "../decide/decide.js";
import { toldVersions, unplacedTurn, type WholeSampled } from "../decide/turn.js";
import { assembleMessage } from "../dialect/message.js";
import { chatReader } from "../prompt/engine-source.js";
import {
  isTurn,
  putOnRecord,
  recordDelivery,
  recordIntent,
  recordUncaptured,
  uncapturedReason,
} from "../record/record.js";
import { readEngineChunk } from "../sample/engine-chunk.js";
import { Collector } from "../sample/sampled.js";
import { withNamedVersions } from "../sample/weight-version.js";
import { TurnLog } from "../trajectory/turn-log.js";
import { type ImportOptions, samplingOf } from "./import-options.js";
import { engineOf, type Labels, type LoggedCall, recordedTimes } from "./logged-call.js";

/** Turns whose sync may be waited for together. */
const SYNCS_MAX = 32;

export interface TrajectoryInput {
  trajectoryId: string;
  labels: Labels;
  /** What the journal says about where this came from, as JSON. */
  configJson: string;
  writerVersion: string;
}

export class ImportedTrajectory {
  readonly defects = new Map<string, number>();
  private readonly log: TurnLog;
  private readonly syncs: Promise<unknown>[] = [];
  /** By commit: the latest end of any call so far, null once one is not known. */
  private readonly finishedMs: (number | null)[] = [];

  private constructor(
    private readonly writer: TrajectoryWriter,
    private readonly options: ImportOptions,
    private readonly counting: ReadonlySet<string>,
  ) {
    this.log = new TurnLog(writer, createState(), options.harness ?? null);
  }

  /** `counting`: engines that count the ids of their replies. @throws TitoError `already_exists`, `cannot_write`. */
  static async open(
    input: TrajectoryInput,
    options: ImportOptions,
    counting: ReadonlySet<string>,
  ): Promise<ImportedTrajectory> {
    const { labels } = input;
    const metadata = { ...options.metadata, ...Object.fromEntries(labels.metadata) };
    const writer = await createTrajectoryWriter({
      out: options.out,
      trajectoryId: input.trajectoryId,
      runId: labels.runId,
      groupId: labels.groupId,
      trialId: labels.trialId,
      attempt: labels.attempt ?? 1,
      metadata,
      configJson: input.configJson,
      writerVersion: input.writerVersion,
      durability: options.durability ?? "fsync",
    });
    return new ImportedTrajectory(writer, options, counting);
  }

  /** @throws TitoError `format_invalid` or `format_limit` for a call that can not be recorded as it is, `capture_degraded` when the disk fails. */
  async add(call: LoggedCall, source: { path: string; line: number }): Promise<void> {
    const { callId } = call;
    const { dialect, headers } = call;
    const incoming = { dialect, headers, path: `${source.path}#${source.line}`, body: Buffer.from(call.body) };
    recordIntent(this.log, callId, { ...incoming, receivedMs: recordedTimes(call.times).received_ms });
    const chunk = readEngineChunk(call.reply);
    const collector = new Collector(null, this.counting.has(engineOf(call, this.options.engine)));
    collector.add(withNamedVersions(chunk, this.options.weightVersion ?? null));
    const all = collector.result();
    const sampled = { ...all, defects: all.defects.filter((defect) => !call.excused.has(defect)) };
    for (const defect of sampled.defects) this.defects.set(defect, (this.defects.get(defect) ?? 0) + 1);
    if (!isTurn(sampled) || (sampled.ids.length === 0 && (chunk.error !== null || sampled.defects.length > 0))) {
      const reason = uncapturedReason(sampled);
      const detail = chunk.error?.message ?? reason;
      recordUncaptured(this.log, { callId, reason, status: null, detail, lostTokens: chunk.error === null });
      return;
    }
    const reader = chatReader(call.request, null);
    const message = assembleMessage([...reader.read(chunk), ...reader.end(sampled)]);
    await this.addTurn(call, incoming, sampled, message);
  }

  private async addTurn(
    call: LoggedCall,
    incoming: Parameters<typeof laneOf>[0],
    sampled: WholeSampled,
    message: ReturnType<typeof assembleMessage>,
  ): Promise<void> {
    const { options, log } = this;
    const { request } = call;
    const byRules = laneOf(incoming, request, log);
    const verdict = call.lane ?? byRules.verdict;
    const version = options.weightVersion ?? "unknown";
    const all = sampled.ids.length === 0 ? [] : [{ version, start: 0, end: sampled.ids.length }];
    const unplaced = unplacedTurn(
      {
        call_id: call.callId,
        lane: verdict.lane,
        lane_evidence: verdict.evidence,
        dialect: call.dialect,
        stream: "none",
        tools: request.tools,
        sampling: { ...samplingOf(options), ...call.sampling },
        logprob_mode: call.logprobMode ?? options.logprobsMode ?? "unknown",
        prompt_mode: "full_history",
        weight_versions: toldVersions(sampled) ?? all,
        engine: {
          kind: engineOf(call, options.engine),
          version: null,
          model: sampled.model ?? call.model ?? request.model ?? options.model ?? "unknown",
        },
        renderer_contract: call.rendererContract ?? "unknown",
        junction: null,
        message,
        special_text_escaped: false,
        times: recordedTimes(call.times),
      },
      sampled,
    );
    const { retryOf, times } = call;
    const arrivedAfter = this.committedBefore(times.received);
    const context = { promptIds: sampled.promptIds, request, retryOf, harness: byRules.harness, arrivedAfter };
    const turn = engineTurn(unplaced, context);
    const before = log.lastCommit;
    const { durable } = await putOnRecord(log, turn, unplaced, request.tools);
    if (log.lastCommit === before) await durable;
    this.noteFinish(times.finished);
    this.noteDelivery(call);
    this.syncs.push(durable);
    if (this.syncs.length >= SYNCS_MAX) await this.synced();
  }

  private noteDelivery(call: LoggedCall): void {
    const delivered = call.delivered ?? (this.options.assumeDelivered === true ? true : null);
    if (delivered === null) return;
    const outcome = delivered ? "delivered" : "failed";
    setDelivery(this.log.continuity, call.callId, outcome);
    const detail = call.delivered === null ? "assumed on import" : "told by the log";
    recordDelivery(this.log, call.callId, { outcome, bytes: 0, status: 200, detail });
  }

  private noteFinish(finished: number | null): void {
    const latest = this.finishedMs.length === 0 ? 0 : this.finishedMs.at(-1)!;
    this.finishedMs.push(finished === null || latest === null ? null : Math.max(latest, finished));
  }

  /** The last commit whose call, with all before it, had ended when a request arrived; null where times are missing. */
  private committedBefore(received: number | null): number | null {
    if (received === null || this.finishedMs.at(-1) === null) return null;
    let commit = this.finishedMs.length;
    while (commit > 0 && this.finishedMs[commit - 1]! > received) commit -= 1;
    return commit;
  }

  private async synced(): Promise<void> {
    await Promise.all(this.syncs.splice(0));
  }

  /** Something of the log that is not on record: the trajectory is not complete. */
  noteGap(reason: string): void {
    this.writer.writeJournal("gap", { call_id: null, reason: reason.slice(0, 500), at_ms: Date.now() });
  }

  async seal(): Promise<SealAnswer> {
    await this.synced();
    return this.writer.seal({ reason: "imported", drift: Object.fromEntries(this.log.drift) });
  }

  /** Leaves what was written so far as a crash would. */
  abandon(): void {
    this.writer.abandon();
  }
}
