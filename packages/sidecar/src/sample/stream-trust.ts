/**
 * Whether this engine is asked to stream. Some versions lose ids in streams and not in whole bodies, with a tool parser for example: the start-up probe
 * sees that, or the answers do. Then calls are sent unstreamed, and whoever wants a stream gets the answer as few deltas.
 */
import { lossesIn } from "@tito/format";

/** Why an engine is not asked to stream; stored with the turn. */
export type UnstreamedReason = "never_streams" | "probe_lost_ids" | "repeated_damage";

/** So many damaged answers among the last `WINDOW` are no accident. */
const DAMAGED_MAX = 2;
const WINDOW = 16;

export class StreamTrust {
  private recent: boolean[] = [];
  private why: UnstreamedReason | null;
  /** Whole bodies lose as much: streaming is not the cause. */
  private settled = false;

  /** `probed`: what the start-up probe found, null where streams are whole. */
  constructor(probed: Exclude<UnstreamedReason, "repeated_damage"> | null) {
    this.why = probed;
  }

  /** Null: it is asked to stream. */
  get reason(): UnstreamedReason | null {
    return this.why;
  }

  /** Takes in how a whole answer came, with its defects. Returns true when the way of asking changes with it. */
  note(streamed: boolean, defects: readonly string[]): boolean {
    const mayChange = this.why === null || this.why === "repeated_damage";
    if (!mayChange || this.settled || streamed !== (this.why === null)) return false;
    this.recent = [...this.recent, lossesIn(defects).length > 0].slice(-WINDOW);
    if (this.recent.filter(Boolean).length < DAMAGED_MAX) return false;
    this.recent = [];
    this.settled = this.why !== null;
    this.why = this.why === null ? "repeated_damage" : null;
    return true;
  }
}
