/** How long each segment's line is: what a turn may build on. A record that could never be rebuilt is refused before it is written. */
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import type { TurnRecord } from "../record/records.js";
import type { CommitInput, Recovered } from "./writer-types.js";

export class LineLengths {
  private readonly tokens = new Map<number, number>();
  private last: number;

  /** `last`: the highest segment number that was ever begun. */
  constructor(recovered: Recovered | null, last: number) {
    this.last = last;
    for (const { segment } of recovered?.log.segments ?? [])
      this.tokens.set(segment, recovered!.lines.lineLength(segment) ?? 0);
  }

  /** Number that the next opened segment gets. */
  get nextSegment(): number {
    return this.last + 1;
  }

  get segments(): number {
    return this.tokens.size;
  }

  /** Throws `format_invalid` when the turn can not be where it should go; `exists` says whether a segment has a file. */
  check(input: CommitInput, exists: (segment: number) => boolean): void {
    const { open, segment, turn } = input;
    if ((open === undefined) === (segment === undefined))
      throw new TitoError("internal", "a turn opens a segment or goes to one");
    const available = open === undefined ? this.ofExisting(segment!, exists) : this.ofOpening(open);
    if (turn.prompt_keep > available) {
      throw new TitoError("format_invalid", `a turn that keeps ${turn.prompt_keep} tokens of a line of ${available}`);
    }
  }

  private ofOpening(open: NonNullable<CommitInput["open"]>): number {
    const number = open.segment ?? this.nextSegment;
    if (number <= this.last || number > LIMITS.segmentsMax) {
      throw new TitoError("format_invalid", `segment ${number} can not be opened after segment ${this.last}`);
    }
    const from = open.parent?.segment ?? open.continues?.segment;
    const line = from === undefined ? 0 : this.tokens.get(from);
    if (line === undefined) throw new TitoError("format_invalid", `segment ${from} is unknown`);
    const available = open.parent === null ? line : open.parent.tokens;
    if (available > line) throw new TitoError("format_invalid", `segment ${from} has ${line} tokens, not ${available}`);
    return available;
  }

  private ofExisting(segment: number, exists: (segment: number) => boolean): number {
    if (!exists(segment)) throw new TitoError("format_invalid", `segment ${segment} is unknown`);
    return this.tokens.get(segment) ?? 0;
  }

  /** A segment was begun. */
  begin(segment: number): void {
    this.last = segment;
  }

  /** A turn was appended. */
  append(segment: number, turn: TurnRecord): void {
    this.tokens.set(segment, turn.prompt_keep + turn.prompt_suffix.length + turn.sampled_ids.length);
  }
}
