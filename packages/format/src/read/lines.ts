/**
 * The token lines of a trajectory, rebuilt from its deltas. A line is what a segment holds after a turn: the turn's prompt ids, then its sampled ids.
 * Lines share their pieces, so that memory grows with what was recorded and not with its square; arrays are made when asked for.
 */
import { sha256 } from "../record/digest.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import type { Message, ToolDefinition } from "../record/messages.js";
import { littleEndianBytes } from "../record/numbers.js";
import type { SharedPrefix } from "../record/records.js";
import { type LoggedTurn, type TrajectoryLog, turnsInCommitOrder } from "./trajectory-log.js";

/** The first `keep` ids of `before`, then `ids`. */
interface Piece {
  before: Piece | null;
  keep: number;
  ids: Int32Array;
  length: number;
}

const EMPTY: Piece = { before: null, keep: 0, ids: new Int32Array(0), length: 0 };

interface TurnLine {
  prompt: Piece;
  /** Prompt, then sampled ids: the checkpoint when the turn may be one. */
  line: Piece;
}

/**
 * `exact`: the prompt ids have the recorded digest. `unresolved`: ids that the turn builds on are not there.
 * `digest_mismatch`: they are there and are not the ones that were recorded.
 */
export type LineStatus = "exact" | "unresolved" | "digest_mismatch";

export class Lines {
  private readonly byTurn = new Map<LoggedTurn, TurnLine | null>();
  private readonly bySegment = new Map<number, Piece | null>();
  /** The last line of each segment that could be rebuilt: what branches off before a turn that can not be is not lost with it. */
  private readonly known = new Map<number, Piece>();
  private readonly byCall = new Map<string, LoggedTurn>();
  private readonly toolsByDigest = new Map<string, ToolDefinition[]>();
  private readonly baseOf = new Map<LoggedTurn, LoggedTurn | null>();
  private readonly status = new Map<LoggedTurn, LineStatus>();
  /** In commit order. */
  readonly turns: readonly LoggedTurn[];

  constructor(log: TrajectoryLog) {
    const headers = new Map(log.segments.map((segment) => [segment.segment, segment.header]));
    const lastOf = new Map<number, LoggedTurn>();
    this.turns = turnsInCommitOrder(log);
    for (const turn of this.turns) {
      const header = headers.get(turn.segment)!;
      const opened = this.bySegment.has(turn.segment);
      const parent = header.parent ?? (header.continues?.segment === turn.segment ? null : wholeLine(header.continues));
      const before = opened ? this.bySegment.get(turn.segment)! : this.opening(parent);
      this.add(turn, before);
      const against = turn.record.decision.evidence.against_call_id;
      const base = lastOf.get(turn.segment) ?? (parent === null ? undefined : lastOf.get(parent.segment));
      this.baseOf.set(turn, (against == null ? base : this.byCall.get(against)) ?? null);
      lastOf.set(turn.segment, turn);
      this.byCall.set(turn.record.call_id, turn);
      const { tools, tools_sha256 } = turn.record;
      if (tools !== null) this.toolsByDigest.set(Buffer.from(tools_sha256).toString("hex"), tools);
    }
  }

  /** Where a segment's line begins. Null: what it shares is not there. */
  private opening(parent: SharedPrefix | null): Piece | null {
    if (parent === null) return EMPTY;
    const line = this.bySegment.get(parent.segment) ?? this.known.get(parent.segment);
    if (line === undefined) return null;
    const keep = Math.min(parent.tokens, line.length);
    return parent.tokens !== Number.POSITIVE_INFINITY && keep < parent.tokens ? null : extend(line, keep, EMPTY.ids);
  }

  private add(turn: LoggedTurn, before: Piece | null): void {
    const { prompt_keep: keep, prompt_suffix: suffix, sampled_ids: sampled } = turn.record;
    if (before === null || keep > before.length || keep + suffix.length + sampled.length > LIMITS.idsMax) {
      this.byTurn.set(turn, null);
      this.bySegment.set(turn.segment, null);
      return;
    }
    const prompt = extend(before, keep, suffix);
    const line = extend(prompt, prompt.length, sampled);
    this.byTurn.set(turn, { prompt, line });
    this.bySegment.set(turn.segment, line);
    this.known.set(turn.segment, line);
  }

  /** Whether the turn's prompt ids can be rebuilt and have the recorded digest. Computed once. */
  statusOf(turn: LoggedTurn): LineStatus {
    const known = this.status.get(turn);
    if (known !== undefined) return known;
    const line = this.byTurn.get(turn);
    const status = line == null ? "unresolved" : digestAgrees(turn, toArray(line.prompt)) ? "exact" : "digest_mismatch";
    this.status.set(turn, status);
    return status;
  }

  /** Tokens of the prompt; null when it can not be rebuilt. */
  promptLength(turn: LoggedTurn): number | null {
    return this.byTurn.get(turn)?.prompt.length ?? null;
  }

  /** The exact prompt ids that the engine was given. A new array. Throws `damaged` unless their digest is the recorded one. */
  promptIds(turn: LoggedTurn): Int32Array {
    const line = this.byTurn.get(turn);
    const where = `${turn.place.file} record ${turn.place.seq} (call ${turn.record.call_id})`;
    if (line == null) throw new TitoError("damaged", `${where}: the ids that this turn builds on are not there`);
    const ids = toArray(line.prompt);
    const exact = digestAgrees(turn, ids);
    this.status.set(turn, exact ? "exact" : "digest_mismatch");
    if (!exact)
      throw new TitoError("damaged", `${where}: the prompt ids have another digest than when they were recorded`);
    return ids;
  }

  /** Prompt ids, then sampled ids. A new array. Throws as {@link promptIds} does. */
  checkpointIds(turn: LoggedTurn): Int32Array {
    const prompt = this.promptIds(turn);
    const ids = new Int32Array(prompt.length + turn.record.sampled_ids.length);
    ids.set(prompt);
    ids.set(turn.record.sampled_ids, prompt.length);
    return ids;
  }

  /** The line of a segment after its last turn. A new array; null when the segment is unknown or can not be rebuilt. */
  line(segment: number): Int32Array | null {
    const line = this.bySegment.get(segment);
    return line == null ? null : toArray(line);
  }

  /** Tokens of a segment's line after its last turn; null when it is unknown or can not be rebuilt. */
  lineLength(segment: number): number | null {
    return this.bySegment.get(segment)?.length ?? null;
  }

  /** The messages of the turn's request, rebuilt. Null when those that it keeps are not there. */
  messages(turn: LoggedTurn): Message[] | null {
    const parts: Message[] = [...turn.record.messages_new];
    let keep = turn.record.messages_keep;
    const seen = new Set<LoggedTurn>([turn]);
    for (let base = this.baseOf.get(turn) ?? null; keep > 0; base = this.baseOf.get(base) ?? null) {
      if (base === null || seen.has(base)) return null;
      seen.add(base);
      const { messages_keep: kept, messages_new: added, message } = base.record;
      const own = [...added, message].slice(0, Math.max(0, keep - kept));
      parts.unshift(...own);
      if (keep - kept > added.length + 1) return null;
      keep = Math.min(keep, kept);
    }
    return parts;
  }

  /** The turn whose history (request messages, then reply) this turn's `messages_keep` counts in; null when there is none. */
  base(turn: LoggedTurn): LoggedTurn | null {
    return this.baseOf.get(turn) ?? null;
  }

  /** The tools that the turn's request offered. Null when they were recorded nowhere. */
  tools(turn: LoggedTurn): ToolDefinition[] | null {
    return turn.record.tools ?? this.toolsByDigest.get(Buffer.from(turn.record.tools_sha256).toString("hex")) ?? null;
  }

  /** The turn of a call. */
  turnOf(callId: string): LoggedTurn | null {
    return this.byCall.get(callId) ?? null;
  }
}

/** The lines of a trajectory that was read. */
export function rebuildLines(log: TrajectoryLog): Lines {
  return new Lines(log);
}

function wholeLine(continues: { segment: number } | null): SharedPrefix | null {
  return continues === null ? null : { segment: continues.segment, tokens: Number.POSITIVE_INFINITY };
}

function extend(before: Piece, keep: number, ids: Int32Array): Piece {
  return { before, keep, ids, length: keep + ids.length };
}

function toArray(piece: Piece): Int32Array {
  const array = new Int32Array(piece.length);
  let end = piece.length;
  for (let at: Piece | null = piece; at !== null && end > 0; at = at.before) {
    // of this piece, ids before `end` stand at [keep, end)
    if (end > at.keep) array.set(at.ids.subarray(0, end - at.keep), at.keep);
    end = Math.min(end, at.keep);
  }
  return array;
}

function digestAgrees(turn: LoggedTurn, ids: Int32Array): boolean {
  return Buffer.compare(promptDigest(ids), turn.record.prompt_sha256) === 0;
}

/** SHA-256 over ids as little-endian int32: what `prompt_sha256` holds. */
export function promptDigest(ids: Int32Array): Uint8Array {
  return sha256(littleEndianBytes(ids));
}
