/** From a planned sample to its arrays, with the promises of a sample checked while they are made. Pure. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import type { PlannedSample, PlannedSpan } from "./build.js";

/** `tokens`, `loss_mask` and `logprobs` have the same length. `logprobs[i]` belongs to `tokens[i]` given what stands before it. */
export interface SampleArrays {
  tokens: Int32Array;
  loss_mask: Uint8Array;
  logprobs: Float32Array | Float64Array;
}

/**
 * Fills the arrays of a sample. Logprobs are 0.0 where nothing was sampled or no finite value was recorded;
 * a sampled but masked token keeps its value. Float64 only when `wide`: then some value of the output would not survive float32.
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
  const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  const hash = createHash("sha256");
  let at = 0;
  for (const span of sample.spans) {
    if (span.start !== at || span.end <= span.start) broken(`spans leave a hole or overlap at token ${at}`);
    if (span.kind === "action") {
      if (span.from === 0 && !sameBytes(hash.copy().digest(), span.turn.prompt_sha256)) {
        broken(`turn ${span.turn.turn} was sampled behind another prompt than tokens 0 to ${span.start}`);
      }
      const sampled = span.turn.sampled_ids.subarray(span.from, span.from + span.end - span.start);
      if (!sameBytes(bytesOf(sampled), bytes.subarray(span.start * 4, span.end * 4))) {
        broken(`tokens ${span.start} to ${span.end} are not the ids that turn ${span.turn.turn} sampled`);
      }
      if (span.reason === "trained") assertFinite(span, broken);
    } else if (span.reason === "trained") broken(`token ${span.start} trains and was not sampled`);
    hash.update(bytes.subarray(span.start * 4, span.end * 4));
    at = span.end;
  }
  if (at !== tokens.length) broken(`spans end at token ${at} of ${tokens.length}`);
}

function assertFinite(span: PlannedSpan, broken: (what: string) => never): void {
  const recorded = span.turn.logprobs;
  for (let i = span.from; i < span.from + span.end - span.start; i += 1) {
    if (!Number.isFinite(recorded?.[i])) broken(`token ${span.start + i - span.from} trains without a logprob`);
  }
}

function bytesOf(ids: Int32Array): Uint8Array {
  return new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
