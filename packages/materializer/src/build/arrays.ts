/** From a planned sample to its arrays, with the promises of a sample checked while they are made. Pure. */
import { createHash, type Hash } from "node:crypto";
import { TitoError } from "@tito/format";
import type { EvidenceTurn } from "../read/evidence.js";
import type { PlannedSample, PlannedSpan } from "./build.js";

/** `tokens`, `loss_mask` and `logprobs` have the same length. `logprobs[i]` belongs to `tokens[i]` given what stands before it. */
export interface SampleArrays {
  tokens: Int32Array;
  loss_mask: Uint8Array;
  logprobs: Float32Array | Float64Array;
}

/**
 * Fills the arrays of a sample. Logprobs are 0.0 where nothing was sampled or no finite value was recorded;
 * a sampled but masked token keeps its value. Float32, rounded where it must be, unless `wide`.
 */
export function fillArrays(sample: PlannedSample, wide: boolean): SampleArrays {
  // A view: samples of one line share it, and nobody writes to it.
  const tokens = sample.line.tokens.subarray(0, sample.length);
  const loss_mask = new Uint8Array(sample.length);
  const logprobs = wide ? new Float64Array(sample.length) : new Float32Array(sample.length);
  for (const span of sample.spans) {
    if (span.kind !== "action") continue;
    if (span.reason === "trained") loss_mask.fill(1, span.start, span.end);
    fillLogprobs(logprobs, span);
  }
  return { tokens, loss_mask, logprobs };
}

function fillLogprobs(logprobs: Float32Array | Float64Array, span: PlannedSpan): void {
  const recorded = span.turn.logprobs;
  if (recorded === null) return;
  const values = recorded.subarray(span.from, span.from + span.end - span.start);
  logprobs.set(values, span.start);
  if (span.reason === "trained") return;
  for (let i = 0; i < values.length; i += 1) if (!Number.isFinite(values[i]!)) logprobs[span.start + i] = 0;
}

/**
 * The promises, checked on every write: spans cover every token once; a trained id was sampled by its recorded call, at this
 * position, behind exactly these tokens (the recorded digest of the call's prompt), with a finite logprob.
 * Throws `internal` with the place when one is broken.
 */
export function assertSample(sample: PlannedSample, arrays: SampleArrays, where: string): void {
  const broken = (what: string): never => {
    throw new TitoError("internal", `${where}: ${what}`, {
      hint: "this is a defect; please report it with the trajectory",
    });
  };
  const { tokens, logprobs, loss_mask } = arrays;
  if (tokens.length !== logprobs.length || tokens.length !== loss_mask.length) broken("arrays differ in length");
  const bytes = bytesOf(tokens);
  const prompts = new PromptCheck(sample, tokens);
  let at = 0;
  for (const span of sample.spans) {
    const { start, end, turn } = span;
    if (start !== at || end <= start) broken(`spans leave a hole or overlap at token ${at}`);
    if (span.kind === "action") {
      if (span.from === 0 && !prompts.holds(turn, start)) {
        broken(`turn ${turn.turn} was sampled behind another prompt than tokens 0 to ${start}`);
      }
      const sampled = turn.sampled_ids.subarray(span.from, span.from + end - start);
      if (!sameBytes(bytesOf(sampled), bytes.subarray(start * 4, end * 4))) {
        broken(`tokens ${start} to ${end} are not the ids that turn ${turn.turn} sampled`);
      }
      if (span.reason === "trained") assertFinite(span, broken);
    } else if (span.reason === "trained") broken(`token ${start} trains and was not sampled`);
    at = end;
  }
  if (at !== tokens.length) broken(`spans end at token ${at} of ${tokens.length}`);
}

/** Says whether tokens up to a place are a turn's recorded prompt: known from reading when they are the very memory that was hashed then, else hashed here. */
class PromptCheck {
  private hash: Hash | null = null;
  private hashed = 0;
  private readonly sameMemory: boolean;

  constructor(
    private readonly sample: PlannedSample,
    private readonly tokens: Int32Array,
  ) {
    const { tokens: line } = sample.line;
    this.sameMemory = tokens.buffer === line.buffer && tokens.byteOffset === line.byteOffset;
  }

  /** Asked in order of `length`. */
  holds(turn: EvidenceTurn, length: number): boolean {
    if (this.sameMemory && this.sample.line.proven.get(turn) === length) return true;
    this.hash ??= createHash("sha256");
    this.hash.update(bytesOf(this.tokens.subarray(this.hashed, length)));
    this.hashed = length;
    return sameBytes(this.hash.copy().digest(), turn.prompt_sha256);
  }
}

function assertFinite(span: PlannedSpan, broken: (what: string) => never): void {
  const recorded = span.turn.logprobs;
  const end = span.from + span.end - span.start;
  for (let i = span.from; i < end; i += 1) {
    if (!Number.isFinite(recorded?.[i])) broken(`token ${span.start + i - span.from} trains without a logprob`);
  }
}

function bytesOf(ids: Int32Array): Uint8Array {
  return new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
