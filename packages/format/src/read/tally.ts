/** What a trajectory holds so far, counted as it is written: the figures of the manifest. */

import type { ManifestCounts, ManifestStatus } from "../record/manifest.js";
import type { RecordMap, TurnRecord } from "../record/records.js";
import type { TrajectoryLog } from "./trajectory-log.js";

/** Reasons and their length in the manifest: it must fit the room that the ballast keeps. */
const REASONS_MAX = 40;
const REASON_LENGTH_MAX = 240;

export class Tally {
  private readonly calls = new Set<string>();
  private readonly ended = new Set<string>();
  private turns = 0;
  private sampledTokens = 0;
  private uncaptured = 0;
  private lostCalls = 0;
  private gaps = 0;
  private damage = 0;
  private readonly reasons: string[] = [];

  /** Starts with what earlier boots left. */
  constructor(log: TrajectoryLog | null) {
    if (log === null) return;
    for (const callId of log.intents.keys()) this.intent(callId);
    for (const record of log.uncaptured) this.journal("uncaptured", record);
    for (const record of log.replays) this.journal("replay", record);
    for (const segment of log.segments) for (const turn of segment.turns) this.turn(turn.record);
    for (const gap of log.gaps) {
      if (gap.reason === "recorded") this.gap(gap.call_id, gap.detail);
      else if (gap.reason !== "torn_tail") {
        this.damage++;
        this.reason(`${gap.file} offset ${gap.offset}: ${gap.detail}`);
      }
    }
  }

  intent(callId: string): void {
    this.calls.add(callId);
  }

  turn(turn: TurnRecord): void {
    this.ended.add(turn.call_id);
    this.turns++;
    this.sampledTokens += turn.sampled_ids.length;
  }

  journal<K extends keyof RecordMap>(name: K, record: RecordMap[K]): void {
    if (name === "uncaptured") {
      const { call_id, lost_tokens, reason } = record as RecordMap["uncaptured"];
      this.ended.add(call_id);
      this.uncaptured++;
      if (lost_tokens) {
        this.lostCalls++;
        this.reason(`call ${call_id}: ${reason}`);
      }
    } else if (name === "replay") this.ended.add((record as RecordMap["replay"]).replay_call_id);
    else if (name === "gap") {
      const { call_id, reason } = record as RecordMap["gap"];
      this.gap(call_id, reason);
    }
  }

  gap(callId: string | null, reason: string): void {
    if (callId !== null) this.ended.add(callId);
    this.gaps++;
    this.reason(callId === null ? reason : `call ${callId}: ${reason}`);
  }

  private reason(text: string): void {
    if (this.reasons.length < REASONS_MAX) this.reasons.push(text.slice(0, REASON_LENGTH_MAX));
  }

  counts(segments: number, boots: number): ManifestCounts {
    return {
      calls: this.calls.size,
      turns: this.turns,
      sampled_tokens: this.sampledTokens,
      uncaptured: this.uncaptured,
      lost_calls: this.lostCalls,
      dangling_calls: this.dangling().length,
      gaps: this.gaps,
      segments,
      boots,
    };
  }

  private dangling(): string[] {
    return [...this.calls].filter((callId) => !this.ended.has(callId));
  }

  /** `degraded` before `incomplete` before `empty` before `complete`, with the reasons. */
  verdict(degraded: string | null): { status: ManifestStatus; reasons: string[] } {
    const reasons = [...this.reasons];
    if (degraded !== null) reasons.unshift(degraded.slice(0, REASON_LENGTH_MAX));
    const dangling = this.dangling();
    for (const callId of dangling.slice(0, REASONS_MAX))
      reasons.push(`call ${callId} was asked and its end is not known`);
    if (degraded !== null || this.gaps > 0) return { status: "degraded", reasons };
    if (this.lostCalls > 0 || this.damage > 0 || dangling.length > 0) return { status: "incomplete", reasons };
    return { status: this.turns === 0 ? "empty" : "complete", reasons };
  }
}
