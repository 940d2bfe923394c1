/**
 * What is recorded of one trajectory, and the order in which it is: the writer, the continuity engine's state, and what the manifest
 * counts. Live calls and an imported log are put on record through the same one.
 */
import type { Decision, EngineState, EngineTurn } from "@tito/continuity";
import { LossCount, type TrajectoryWriter, type TurnRecord } from "@tito/format";

/** How the sampling of a turn ended, and whether its output parsed: what a junction behind it has to know. */
export interface TurnEnding {
  end: "stop" | "length" | "stop_string";
  malformed: boolean;
}

export function endingOf(record: Pick<TurnRecord, "finish_reason" | "stop_reason" | "malformed">): TurnEnding {
  const { finish_reason, stop_reason, malformed } = record;
  const end = finish_reason === "length" ? "length" : typeof stop_reason === "string" ? "stop_string" : "stop";
  return { end, malformed };
}

export class TurnLog {
  /** Digest of the tools that each segment's last turn offered. */
  readonly toolsOfSegment = new Map<number, string>();
  /** Drift cause or opening reason → how often; goes into the manifest. */
  readonly drift = new Map<string, number>();
  /** Call id → how that turn ended. */
  readonly endings = new Map<string, TurnEnding>();
  lastCommit: number;
  /** Turns recorded, earlier boots included. */
  turns: number;
  /** Calls whose sampled tokens are not on record. */
  uncaptured = 0;
  /** Calls that ended without token ids, refused ones too, and what the last of them was told. */
  withoutIds = 0;
  /** What replies lost, earlier boots included. */
  readonly loss = new LossCount();
  lastWithoutIds: string | null = null;
  private order: Promise<unknown> = Promise.resolve();

  constructor(
    readonly writer: TrajectoryWriter,
    readonly continuity: EngineState,
    /** Harness whose rule data may name volatile text and headers. */
    readonly harness: string | null,
  ) {
    this.lastCommit = continuity.last_commit;
    this.turns = continuity.turns.size;
  }

  /** Runs `work` after everything that was put in order before. */
  inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.order.then(work);
    this.order = result.catch(() => undefined);
    return result;
  }

  noteTurn(decision: Decision, turn: EngineTurn, ending: TurnEnding): void {
    this.endings.set(turn.call_id, ending);
    this.turns += 1;
    this.toolsOfSegment.set(decision.segment, turn.tools_sha256);
    if (decision.kind === "append") return;
    const cause = decision.evidence.cause ?? decision.reason;
    this.drift.set(cause, (this.drift.get(cause) ?? 0) + 1);
  }
}
