/** Stage "pack": several samples in one row of at most `max_tokens`, first fit, boundaries and weights kept. Off by default. Pure. */
import { TitoError } from "@tito/format";
import { z } from "zod";
import type { MadeRun, MadeSample } from "./rollout-run.js";

/** What a part keeps of its run: who it is, what it is compared with, and whether it counts. */
type PackedRun = Pick<MadeRun["head"], "run_id" | "trial_id" | "attempt" | "group_id" | "reward" | "excluded">;

/** Where a sample stands in a packed row. Attention must not cross `[start, end)`; position ids start at 0 in each. */
interface PackedPart extends PackedRun {
  sample: number;
  start: number;
  end: number;
  advantage: number | null;
  advantage_per_action: number[];
  weight: number;
}

/** Schema `tito.packed_sample/v1`. */
export interface PackedSample {
  schema: "tito.packed_sample/v1";
  tokens: Int32Array;
  loss_mask: Uint8Array;
  logprobs: Float32Array | Float64Array;
  position_ids: Int32Array;
  parts: PackedPart[];
}

/** The same as JSON holds it. */
export const packedSampleSchema = z.strictObject({
  schema: z.literal("tito.packed_sample/v1"),
  tokens: z.array(z.int()),
  loss_mask: z.array(z.int().min(0).max(1)),
  logprobs: z.array(z.number()),
  position_ids: z.array(z.int().min(0)),
  parts: z.array(
    z.strictObject({
      run_id: z.string(),
      trial_id: z.string(),
      attempt: z.int().min(0),
      group_id: z.string(),
      reward: z.number().nullable(),
      excluded: z.string().nullable(),
      sample: z.int().min(0),
      start: z.int().min(0),
      end: z.int().min(1),
      advantage: z.number().nullable(),
      advantage_per_action: z.array(z.number()),
      weight: z.number().min(0),
    }),
  ),
});

interface Bin {
  tokens: number;
  samples: { run: PackedRun; sample: MadeSample }[];
}

export interface PackOptions {
  max_tokens: number;
  open_bins: number;
  skip_untrained: boolean;
}

/**
 * First-fit packing over a stream: a sample goes into the first open bin with room, in the order in which bins were opened.
 * When a bin more than `open_bins` would be open, the fullest is closed, so memory is bounded and the result depends on the order only.
 */
export class Packer {
  private bins: Bin[] = [];

  constructor(private readonly options: PackOptions) {}

  /** Adds a run's samples; returns the rows that were finished by that. Throws `internal` for a sample longer than a bin. */
  add(run: MadeRun): PackedSample[] {
    const done: PackedSample[] = [];
    const { run_id, trial_id, attempt, group_id, reward, excluded } = run.head;
    const kept = { run_id, trial_id, attempt, group_id, reward, excluded };
    for (const sample of run.samples) {
      if (this.options.skip_untrained && sample.trained_tokens === 0) continue;
      done.push(...this.place(kept, sample));
    }
    return done;
  }

  private place(run: PackedRun, sample: MadeSample): PackedSample[] {
    const { max_tokens, open_bins } = this.options;
    const tokens = sample.tokens.length;
    if (tokens > max_tokens)
      throw new TitoError("internal", `run ${run.run_id}: a sample of ${tokens} tokens in bins of ${max_tokens}`);
    const bin = this.bins.find((each) => each.tokens + tokens <= max_tokens);
    if (bin) {
      bin.tokens += tokens;
      bin.samples.push({ run, sample });
      return [];
    }
    this.bins.push({ tokens, samples: [{ run, sample }] });
    if (this.bins.length <= open_bins) return [];
    const fullest = this.bins.reduce((best, each) => (each.tokens > best.tokens ? each : best));
    this.bins = this.bins.filter((each) => each !== fullest);
    return [packBin(fullest)];
  }

  /** The rows that are still open. */
  finish(): PackedSample[] {
    const rest = this.bins.map(packBin);
    this.bins = [];
    return rest;
  }
}

function packBin(bin: Bin): PackedSample {
  const wide = bin.samples.some(({ sample }) => sample.logprobs instanceof Float64Array);
  const packed: PackedSample = {
    schema: "tito.packed_sample/v1",
    tokens: new Int32Array(bin.tokens),
    loss_mask: new Uint8Array(bin.tokens),
    logprobs: wide ? new Float64Array(bin.tokens) : new Float32Array(bin.tokens),
    position_ids: new Int32Array(bin.tokens),
    parts: [],
  };
  let at = 0;
  for (const { run, sample } of bin.samples) {
    const end = at + sample.tokens.length;
    packed.tokens.set(sample.tokens, at);
    packed.loss_mask.set(sample.loss_mask, at);
    packed.logprobs.set(sample.logprobs, at);
    for (let i = at; i < end; i += 1) packed.position_ids[i] = i - at;
    const { sample_index, advantage, advantage_per_action, weight } = sample;
    packed.parts.push({ ...run, sample: sample_index, start: at, end, advantage, advantage_per_action, weight });
    at = end;
  }
  return packed;
}
