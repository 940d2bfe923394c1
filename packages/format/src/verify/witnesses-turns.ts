/** What turns say about each other: prompt digests over rebuilt lines, counts, histories, checkpoints, tools. Of a line only what is still on it is held. */
import { createHash, type Hash } from "node:crypto";
import { type LoggedTurn, type TrajectoryLog, turnsInCommitOrder } from "../read/trajectory-log.js";
import { sha256 } from "../record/digest.js";
import { littleEndianBytes } from "../record/numbers.js";
import type { SegmentHeader, TurnRecord } from "../record/records.js";
import { LOST, type Report } from "./contradiction.js";

/** The arrays of a turn that its line is made of. */
export type TurnIds = Pick<TurnRecord, "prompt_suffix" | "sampled_ids">;

/** The first `keep` ids of `before`, then `ids`. */
interface Piece {
  before: Piece | null;
  keep: number;
  ids: Int32Array;
  length: number;
}

/** A segment's line after its last turn. `hash` has taken it as little-endian int32; null where it was not taken from the start. */
interface Line {
  piece: Piece;
  hash: Hash | null;
}

interface Seen {
  turn: LoggedTurn;
  /** Prompt and sampled ids. */
  tokens: number;
  /** Messages of its request, and its own. */
  messages: number;
}

/** Digest of an empty list of tools. */
const NO_TOOLS = sha256("[]").toString("hex");
const EMPTY: Piece = { before: null, keep: 0, ids: new Int32Array(0), length: 0 };

/** Asks `idsOf` in commit order, once for each turn; twice where a boot refused turns. */
export function checkTurns(log: TrajectoryLog, idsOf: (turn: LoggedTurn) => TurnIds, report: Report): void {
  const turns = turnsInCommitOrder(log);
  const refused = new Set(log.recorded_gaps.map((gap) => gap.call_id));
  const kept = turns.filter((turn) => !refused.has(turn.record.call_id));
  if (kept.length === turns.length) {
    runChecks(log, turns, idsOf, report);
    return;
  }
  // What was under way when a turn was refused may build on it, and later boots never do: only what is wrong either way contradicts.
  const without = new Set<string>();
  runChecks(log, kept, idsOf, (code, { file, seq }) => void without.add(`${code} ${file} ${seq}`));
  runChecks(log, turns, idsOf, (code, place, message, more) => {
    if (without.has(`${code} ${place.file} ${place.seq}`)) report(code, place, message, more);
  });
}

function runChecks(
  log: TrajectoryLog,
  turns: readonly LoggedTurn[],
  idsOf: (turn: LoggedTurn) => TurnIds,
  report: Report,
): void {
  const check = new TurnCheck(log, report);
  for (const turn of turns) check.turn(turn, idsOf(turn));
}

class TurnCheck {
  private readonly headers: Map<number, SegmentHeader>;
  /** Null: the line can not be known. */
  private readonly lines = new Map<number, Line | null>();
  private readonly byCall = new Map<string, Seen>();
  private readonly lastOf = new Map<number, Seen>();
  private readonly tools = new Set<string>([NO_TOOLS]);

  constructor(
    private readonly log: TrajectoryLog,
    private readonly report: Report,
  ) {
    this.headers = new Map(log.segments.map(({ segment, header }) => [segment, header]));
  }

  turn(turn: LoggedTurn, ids: TurnIds): void {
    const { record, segment } = turn;
    const isLater = this.lastOf.has(segment) || this.headers.get(segment)!.continues !== null;
    const base = this.baseOf(turn);
    const before = this.lineBefore(segment);
    const line = before === null ? null : this.addToLine(turn, before, ids);
    this.lines.set(segment, line);
    if (line === null) this.wrong(turn, "prompt_mismatch", "the ids that its prompt keeps are not there");
    const keep = record.messages_keep;
    if (keep > (base?.messages ?? 0))
      this.wrong(turn, "record_mismatch", `it keeps ${keep} messages of ${base?.messages ?? 0}`);
    this.checkDecision(turn, isLater, ids);
    this.checkCounts(turn, line === null ? null : line.piece.length - ids.sampled_ids.length, ids.sampled_ids.length);
    this.checkTools(turn);
    this.checkIntent(turn);
    const tokens = record.prompt_keep + ids.prompt_suffix.length + ids.sampled_ids.length;
    const seen = { turn, tokens, messages: keep + record.messages_new.length + 1 };
    this.byCall.set(record.call_id, seen);
    this.lastOf.set(segment, seen);
  }

  private wrong(turn: LoggedTurn, code: "prompt_mismatch" | "record_mismatch", message: string): void {
    this.report(code, turn.place, `call ${turn.record.call_id}: ${message}`, LOST);
  }

  /** The turn in whose history `messages_keep` counts. */
  private baseOf({ record, segment }: LoggedTurn): Seen | undefined {
    const against = record.decision.evidence.against_call_id;
    if (against != null) return this.byCall.get(against);
    const own = this.lastOf.get(segment);
    const { parent, continues } = this.headers.get(segment)!;
    const from = parent?.segment ?? continues?.segment;
    return own ?? (from === undefined ? undefined : this.lastOf.get(from));
  }

  private lineBefore(segment: number): Line | null {
    const own = this.lines.get(segment);
    if (own !== undefined) return own;
    const { parent, continues } = this.headers.get(segment)!;
    const from = parent?.segment ?? (continues?.segment === segment ? undefined : continues?.segment);
    if (from === undefined) return { piece: EMPTY, hash: createHash("sha256") };
    const line = this.lines.get(from);
    if (line == null || parent === null) return line ?? null;
    const { tokens } = parent;
    if (tokens > line.piece.length) return null;
    return tokens === line.piece.length ? line : { piece: extend(line.piece, tokens, EMPTY.ids), hash: null };
  }

  /** The line with the turn's ids; a prompt whose digest is another is reported, and its ids are on the line all the same. */
  private addToLine(
    turn: LoggedTurn,
    before: Line,
    { prompt_suffix: suffix, sampled_ids: sampled }: TurnIds,
  ): Line | null {
    const { prompt_keep: keep, prompt_sha256: said } = turn.record;
    if (keep > before.piece.length) return null;
    const prompt = extend(before.piece, keep, suffix);
    let hash: Hash;
    if (keep === before.piece.length && before.hash !== null)
      hash = before.hash.copy().update(littleEndianBytes(suffix));
    else hash = createHash("sha256").update(littleEndianBytes(toArray(prompt)));
    if (Buffer.compare(hash.copy().digest(), said) !== 0)
      this.wrong(turn, "prompt_mismatch", "prompt_sha256 is not the digest of its prompt ids");
    return { piece: extend(prompt, prompt.length, sampled), hash: hash.update(littleEndianBytes(sampled)) };
  }

  /** An append is never the first turn of its segment, and nothing else is a later one; what evidence names is there, and as long as it says. */
  private checkDecision(turn: LoggedTurn, isLater: boolean, ids: TurnIds): void {
    const { kind, evidence } = turn.record.decision;
    const wrong = (message: string): void => this.wrong(turn, "record_mismatch", message);
    if (isEnginesOwn(turn.record) && (kind === "append") !== isLater)
      wrong(`decision ${kind} has no place ${isLater ? "behind" : "before"} the first turn`);
    for (const callId of [evidence.against_call_id, evidence.checkpoint_call_id]) {
      if (callId != null && !this.byCall.has(callId)) wrong(`it builds on call ${callId}, which is not there`);
    }
    const { checkpoint_tokens: tokens, checkpoint_call_id: checkpoint } = evidence;
    const built = checkpoint == null ? undefined : this.byCall.get(checkpoint);
    if (built !== undefined && tokens !== undefined && tokens !== built.tokens)
      wrong(`its checkpoint, call ${checkpoint}, has ${built.tokens} tokens, and not ${tokens}`);
    const seam = turn.record.junction?.seam_ids ?? [];
    if (seam.some((id, index) => ids.prompt_suffix[index] !== id))
      wrong("the ids of its junction are not in its prompt");
  }

  /** The engine's counts are those of the ids, unless a defect of the turn says that they are not. */
  private checkCounts(turn: LoggedTurn, prompt: number | null, sampled: number): void {
    const { usage, defects } = turn.record;
    const { prompt_tokens, completion_tokens } = usage;
    if (completion_tokens !== null && completion_tokens !== sampled && !defects.includes("completion_count_disagrees"))
      this.wrong(turn, "record_mismatch", `${sampled} sampled ids, and its usage counts ${completion_tokens}`);
    if (prompt === null || prompt_tokens === null || prompt_tokens === prompt) return;
    if (!defects.includes("prompt_count_disagrees"))
      this.wrong(turn, "record_mismatch", `${prompt} prompt ids, and its usage counts ${prompt_tokens}`);
  }

  /** A list of tools that is left out stands in an earlier turn, under the same digest; an empty one may stand nowhere. */
  private checkTools(turn: LoggedTurn): void {
    const digest = Buffer.from(turn.record.tools_sha256).toString("hex");
    if (turn.record.tools !== null) this.tools.add(digest);
    else if (isEnginesOwn(turn.record) && !this.tools.has(digest))
      this.wrong(turn, "record_mismatch", "its tools are in no earlier turn");
  }

  private checkIntent(turn: LoggedTurn): void {
    const intent = this.log.intents.get(turn.record.call_id);
    if (intent !== undefined && intent.dialect !== turn.record.dialect)
      this.wrong(turn, "record_mismatch", `its dialect is ${turn.record.dialect}, its intent says ${intent.dialect}`);
  }
}

/** Only evidence that names a checkpoint, or none, is the continuity engine's own; other writers decide and leave out as they like. */
function isEnginesOwn({ decision }: TurnRecord): boolean {
  return decision.evidence.checkpoint_tokens !== undefined;
}

function extend(before: Piece, keep: number, ids: Int32Array): Piece {
  return { before: keep === 0 ? null : before, keep, ids, length: keep + ids.length };
}

function toArray(piece: Piece): Int32Array {
  const array = new Int32Array(piece.length);
  let end = piece.length;
  for (let at: Piece | null = piece; at !== null && end > 0; at = at.before) {
    if (end > at.keep) array.set(at.ids.subarray(0, end - at.keep), at.keep);
    end = Math.min(end, at.keep);
  }
  return array;
}
