/** What one call sampled, collected from the chunks of its reply, and the invariants that a reply must meet to be evidence. */
import type { VersionSpan } from "@tito/format";
import type { EngineChunk, LogprobEntry } from "./engine-chunk.js";
import { versionRange } from "./weight-version.js";

/**
 * Why a reply is not whole evidence; stored with the turn. `isCheckpointable` of @tito/continuity says which of these let a turn be a
 * checkpoint; none but `usage_missing` (an engine that never counts) trains unless the policy allows it.
 */
export type Defect =
  | "prompt_ids_missing"
  | "sampled_ids_missing"
  | "ids_invalid"
  | "completion_count_disagrees"
  | "token_positions_disagree"
  | "prompt_count_disagrees"
  | "ids_logprobs_disagree"
  | "logprobs_missing"
  | "logprob_not_finite"
  | "logprob_positive"
  | "usage_missing"
  | "usage_lost"
  | "prompt_changed"
  | "extra_choices"
  | "finish_missing"
  | "finish_unknown"
  | "unparsed_chunk"
  | "aborted"
  | "engine_error"
  | "stream_cut"
  | "client_gone"
  | "aborted_by_seal";

/** The evidence of one call. Ids and log probabilities are the engine's own, in order; nothing is padded or derived from text. */
export interface Sampled {
  promptIds: Int32Array | null;
  ids: Int32Array;
  logprobs: Float32Array | Float64Array | null;
  gaps: { index: number; was: string }[];
  finish: string | null;
  stopReason: number | string | null;
  usage: { prompt: number | null; completion: number | null; cached: number | null; reasoning: number | null };
  versions: VersionSpan[];
  upstreamId: string | null;
  model: string | null;
  createdS: number | null;
  defects: Defect[];
}

/**
 * Finish reasons that are known: the policy ended its answer, its limit was reached, or the engine gave up. Every other one (`content_filter`,
 * `cancelled`, `repetition`, an empty text) may mean that the answer ended in a way that the policy did not choose.
 */
const FINISH_REASONS: ReadonlySet<string> = new Set([
  "stop",
  "length",
  "tool_calls",
  "function_call",
  "abort",
  "error",
]);

/** Adds the chunks of one reply up. */
export class Collector {
  private promptIds: Int32Array | null = null;
  private readonly ids: number[] = [];
  private entries: LogprobEntry[] = [];
  private sawLogprobs = false;
  private sawOutput = false;
  private readonly defects = new Set<Defect>();
  private finish: string | null = null;
  private stopReason: number | string | null = null;
  private usage: Sampled["usage"] | null = null;
  private spans: VersionSpan[] | null = null;
  private readonly versionsSeen: { version: string; at: number }[] = [];
  private first: { id: string | null; model: string | null; createdS: number | null } | null = null;

  /** Counts came with the finish or behind it: those of the whole reply, and not of a part. */
  private endCounted = false;
  /** Of the reply that is being read: the offset of its first text, and bytes of text so far. */
  private textFrom: number | null = null;
  private textBytes = 0;
  /** The version that the engine told last. */
  private label: string | null;

  /** Where the reply that is being read begins in the sampled ids: 0, or behind what an aborted reply brought. */
  private base = 0;

  /**
   * `sent`: the prompt ids that the engine was given, which it must report; null when it renders by itself.
   * `before`: the engine's weight version before the call, null when it does not tell.
   * `counts`: this engine tells how many ids a reply has, so that a reply without its counts has lost them, and maybe ids with them.
   */
  constructor(
    private readonly sent: Int32Array | null = null,
    private readonly counts = false,
    before: string | null = null,
  ) {
    this.label = before;
  }

  /** Sampled ids so far. */
  get count(): number {
    return this.ids.length;
  }

  idsSoFar(): Int32Array {
    return Int32Array.from(this.ids);
  }

  /** There are ids, and nothing is wrong with them: an aborted reply can go on behind them. */
  get whole(): boolean {
    return this.ids.length > 0 && this.promptIds !== null && this.defects.size === 0;
  }

  /** The engine's finish reason, null while there is none. */
  get finished(): string | null {
    return this.finish;
  }

  add(chunk: EngineChunk): void {
    this.first ??= { id: chunk.id, model: chunk.model, createdS: chunk.createdS };
    if (chunk.promptIds !== null) this.addPrompt(chunk.promptIds);
    const start = this.ids.length;
    this.sawOutput ||= chunk.hasOutput;
    if (chunk.sampled !== null) {
      if (!chunk.sampled.valid) this.defects.add("ids_invalid");
      for (const id of chunk.sampled.ids) this.ids.push(id);
    }
    if (chunk.version !== null) this.addVersion(chunk.version, start);
    if (chunk.logprobs !== null) {
      this.sawLogprobs ||= chunk.logprobs.length > 0;
      for (const entry of chunk.logprobs) this.entries.push(entry);
    }
    if (chunk.position !== null) this.addPosition(chunk.position);
    if (chunk.finish !== null) {
      this.finish = chunk.finish;
      this.endCounted = false;
    }
    if (chunk.usage !== null && this.finish !== null) this.endCounted = true;
    if (chunk.stopReason !== null) this.stopReason = chunk.stopReason;
    if (chunk.usage !== null) this.usage = this.base === 0 ? chunk.usage : this.wholeUsage(chunk.usage);
    if (chunk.versions !== null) this.addSpans(chunk.versions);
    if (chunk.extraChoices) this.defects.add("extra_choices");
    if (chunk.error !== null) this.defects.add("engine_error");
  }

  /** Notes something that happened to the call from outside. */
  mark(defect: Defect): void {
    this.defects.add(defect);
  }

  /** The reply could not be resumed. */
  giveUp(): void {
    this.finish = "abort";
  }

  /** The engine aborted: the next chunks are of a reply to prompt ‖ ids so far. Versions are those that the engine tells by itself, before the call and now. */
  resume(before: string | null, now: string | null): void {
    if (this.spans === null && before !== null && now !== null) {
      if (this.versionsSeen.length === 0) this.versionsSeen.push({ version: before, at: 0 });
      if (this.base < this.ids.length) this.versionsSeen.push({ version: now, at: this.ids.length });
    }
    this.label = now ?? this.label;
    this.base = this.ids.length;
    this.finish = null;
    this.stopReason = null;
    this.usage = null;
    this.textFrom = null;
    this.textBytes = 0;
  }

  /**
   * A label is the engine's at the moment when it sends a piece. Ids of a piece that has another label than what was known before it were sampled under
   * the earlier version, the later one, or any between: they get both, the oldest first. `start`: where the piece's ids begin.
   */
  private addVersion(version: string, start: number): void {
    const known = this.versionsSeen.some((seen) => seen.at >= this.base);
    if (known && version === this.label) return;
    this.versionsSeen.push({ version: versionRange(this.label, version), at: known ? start : this.base });
    if (this.label !== null && this.label !== version) this.versionsSeen.push({ version, at: this.ids.length });
    this.label = version;
  }

  /** An offset beyond the text so far, in whatever units the engine counts: a piece between them is lost. */
  private addPosition({ offset, text }: NonNullable<EngineChunk["position"]>): void {
    this.textFrom ??= offset;
    if (offset - this.textFrom > this.textBytes) this.defects.add("token_positions_disagree");
    this.textBytes += Buffer.byteLength(text);
  }

  /** What the engine reports must be what was sent, or what it reported before; a resumed reply's prompt holds the ids so far. */
  private addPrompt(reported: Int32Array): void {
    const expected = this.sent ?? this.promptIds;
    if (expected !== null) {
      const wanted = Int32Array.from([...expected, ...this.ids.slice(0, this.base)]);
      if (!sameIds(wanted, reported)) this.defects.add("prompt_changed");
    }
    this.promptIds ??= reported;
  }

  private addSpans(spans: readonly VersionSpan[]): void {
    const moved = spans.map((span) => ({ ...span, start: span.start + this.base, end: span.end + this.base }));
    this.spans = [...(this.spans ?? []).filter((span) => span.end <= this.base), ...moved];
  }

  /** A resumed reply counts the ids so far as its prompt. */
  private wholeUsage(usage: NonNullable<Sampled["usage"]>): Sampled["usage"] {
    const { prompt, completion } = usage;
    return {
      ...usage,
      prompt: prompt === null ? null : prompt - this.base,
      completion: completion === null ? null : completion + this.base,
    };
  }

  /** The evidence, with the invariants checked (counts agree with each other and with usage, values are finite). */
  result(): Sampled {
    const ids = Int32Array.from(this.ids);
    const logprobs = this.readLogprobs();
    this.check(logprobs);
    return {
      promptIds: this.promptIds,
      ids,
      logprobs: logprobs?.values ?? null,
      gaps: logprobs?.gaps ?? [],
      finish: this.finish,
      stopReason: this.stopReason,
      usage: this.usage ?? { prompt: null, completion: null, cached: null, reasoning: null },
      versions: this.versionSpans(),
      upstreamId: this.first?.id ?? null,
      model: this.first?.model ?? null,
      createdS: this.first?.createdS ?? null,
      defects: [...this.defects],
    };
  }

  /** The engine counts no sampled token, and nothing contradicts it: the answer ended at once (a stop, a limit). An empty list without a count is no such word. */
  private get endedAtOnce(): boolean {
    const { ids, entries, finish, usage } = this;
    const aborted = finish === "abort" || finish === "error";
    const silent = ids.length === 0 && entries.length === 0 && !this.sawOutput && !this.defects.has("ids_invalid");
    return silent && usage?.completion === 0 && !aborted;
  }

  private check(logprobs: { gaps: unknown[] } | null): void {
    const { defects, usage } = this;
    if (this.promptIds === null) defects.add("prompt_ids_missing");
    if (this.ids.length === 0) {
      if (!this.endedAtOnce) defects.add("sampled_ids_missing");
    } else if (!this.sawLogprobs) defects.add("logprobs_missing");
    else if (logprobs === null) defects.add("ids_logprobs_disagree");
    else if (logprobs.gaps.length > 0) defects.add("logprob_not_finite");
    if (this.entries.some((entry) => "was" in entry && entry.positive === true)) defects.add("logprob_positive");
    if (this.finish === "abort" || this.finish === "error") defects.add("aborted");
    const cut = (["stream_cut", "client_gone", "aborted_by_seal", "engine_error", "unparsed_chunk"] as const).some(
      (one) => defects.has(one),
    );
    if (this.finish === null && !cut) defects.add("finish_missing");
    if (this.finish !== null && !FINISH_REASONS.has(this.finish)) defects.add("finish_unknown");
    if (usage === null || usage.completion === null || usage.prompt === null) {
      if (!cut) defects.add(this.counts ? "usage_lost" : "usage_missing");
    } else if (this.counts && this.finish !== null && !this.endCounted && !cut) defects.add("usage_lost");
    const { prompt, completion } = usage ?? { prompt: null, completion: null };
    if (completion !== null && completion !== this.ids.length) defects.add("completion_count_disagrees");
    if (prompt !== null && this.promptIds !== null && prompt !== this.promptIds.length) {
      defects.add("prompt_count_disagrees");
    }
  }

  /** Null when there is not exactly one entry for each id: values that can not be placed are no evidence. */
  private readLogprobs(): { values: Float32Array | Float64Array; gaps: Sampled["gaps"] } | null {
    if (this.entries.length !== this.ids.length) return null;
    if (!this.sawLogprobs && !this.endedAtOnce) return null;
    const gaps: Sampled["gaps"] = [];
    const wide = new Float64Array(this.entries.length);
    let lossless = true;
    for (const [index, entry] of this.entries.entries()) {
      if ("value" in entry) {
        wide[index] = entry.value;
        lossless &&= Math.fround(entry.value) === entry.value;
      } else {
        wide[index] = Number.NaN;
        gaps.push({ index, was: entry.was });
      }
    }
    return { values: lossless ? new Float32Array(wide) : wide, gaps };
  }

  private versionSpans(): VersionSpan[] {
    if (this.spans !== null) return this.spans;
    return this.versionsSeen.flatMap((seen, index) => {
      const start = index === 0 ? 0 : seen.at;
      const end = this.versionsSeen[index + 1]?.at ?? this.ids.length;
      return end > start ? [{ version: seen.version, start, end }] : [];
    });
  }
}

function sameIds(a: Int32Array, b: Int32Array): boolean {
  return Buffer.from(a.buffer, a.byteOffset, a.byteLength).equals(Buffer.from(b.buffer, b.byteOffset, b.byteLength));
}
