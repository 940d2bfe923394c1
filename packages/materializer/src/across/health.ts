/** `tito health`: scores trained tokens again and compares, sample by sample, so that it can stop and go on. I/O edge. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import { type ReadRun, type ReadSample, readOutput } from "../audit/read-output.js";
import { openManifest } from "../audit/verify-output.js";
import { addCoverage, type Coverage, emptyCoverage } from "../build/coverage.js";
import { canonicalJson } from "../recipe/canonical-json.js";
import { type Agreement, addAgreement, agreementOf, NO_AGREEMENT } from "./agreement.js";
import { type ComparedSpan, comparableSpans, versionAt } from "./comparable.js";
import { Notes } from "./notes.js";
import { openScorer, type Scorer, scorePrompts } from "./score.js";

export interface HealthOptions {
  /** Outputs of materialize: files or directories of shards. */
  paths: readonly string[];
  engine: { url: string; model: string | null; key: string | null };
  /** Share of the runs that is scored, chosen by their ids: the same ones each time. */
  fraction: number;
  /** Tokens of the samples that go into one request; a longer sample goes by itself. */
  chunkTokens: number;
  notes?: string | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: { done: number; total: number }) => void) | undefined;
}

/** A token with a large difference; `tito explain TRIALS --run … --sample … --token …` says where it comes from. */
export interface WorstToken {
  run_id: string;
  sample: number;
  token: number;
  id: number;
  turn: number;
  version: string;
  recorded: number;
  scored: number;
  difference: number;
}

/** What became of one sample. */
interface SampleHealth {
  versions: [string, Agreement][];
  worst: WorstToken[];
  not_comparable: { turns: number; tokens: number };
  /** Trained tokens that the engine refused to score, and its words. */
  refused: { tokens: number; why: string } | null;
}

/** What was measured, before any verdict. */
export interface Measured {
  engine: { url: string; model: string; any_temperature: boolean };
  runs: number;
  runs_left_out: number;
  coverage: Coverage;
  samples: SampleHealth[];
}

const WORST_MAX = 20;

/** Null `measured`: it was stopped. Errors: `not_found`, `damaged`, `usage` for packed rows, `upstream_unavailable`, `upstream_invalid`, `cannot_write`. */
export async function measureHealth(
  options: HealthOptions,
): Promise<{ measured: Measured | null; done: number; total: number }> {
  const manifests = options.paths.map(openManifest);
  const total = manifests.reduce((sum, { manifest }) => sum + manifest.counts.samples, 0);
  if (manifests.some(({ manifest }) => manifest.packed))
    throw new TitoError("usage", "packed rows do not say how their turns were sampled", {
      hint: "materialize without --pack-max-tokens",
    });
  const scorer = await openScorer(options.engine);
  const anyTemperature = await scoresAtTemperatures(scorer);
  const measured: Measured = {
    engine: { url: scorer.url, model: scorer.model, any_temperature: anyTemperature },
    runs: 0,
    runs_left_out: 0,
    coverage: emptyCoverage(),
    samples: [],
  };
  const pass = new Pass(options, { scorer, anyTemperature }, measured);
  let done = 0;
  for await (const row of rowsOf(manifests)) {
    pass.run(row.run);
    if (row.sample !== null) {
      if (pass.isChosen) await pass.sample(row.run, row.sample);
      done += 1;
      options.onProgress?.({ done, total });
    }
    if (options.signal?.aborted) break;
  }
  await pass.flush();
  return { measured: options.signal?.aborted ? null : measured, done, total };
}

async function* rowsOf(manifests: readonly ReturnType<typeof openManifest>[]) {
  for (const { manifest, dir } of manifests)
    for (const file of manifest.outputs)
      for await (const row of readOutput(join(dir, file.path), manifest.format)) if ("run" in row) yield row;
}

/** Two temperatures give two answers, unless the engine does not know the field. */
async function scoresAtTemperatures(scorer: Scorer): Promise<boolean> {
  const prompt = [1, 2, 3, 4, 5, 6, 7, 8];
  const [one, two] = [
    await scorePrompts(scorer, [prompt], 1, undefined),
    await scorePrompts(scorer, [prompt], 2, undefined),
  ];
  if ("refused" in one || "refused" in two) return false;
  return one.scores[0]!.some((value, i) => i > 0 && value !== two.scores[0]![i]);
}

interface Waiting {
  key: string;
  run: ReadRun;
  sample: ReadSample;
  spans: ComparedSpan[];
  health: SampleHealth;
}

/** One pass over the rows: samples wait until a request is full. */
class Pass {
  isChosen = false;
  private runKey = "";
  private readonly notes: Notes<SampleHealth>;
  private waiting: Waiting[] = [];
  private waitingTokens = 0;

  constructor(
    private readonly options: HealthOptions,
    private readonly with_: { scorer: Scorer; anyTemperature: boolean },
    private readonly measured: Measured,
  ) {
    this.notes = new Notes<SampleHealth>(options.notes ?? null, (value) => value as SampleHealth);
  }

  /** Rows of a run follow each other. */
  run(run: ReadRun): void {
    const key = JSON.stringify([run.run_id, run.trial_id, run.attempt]);
    if (key === this.runKey) return;
    this.runKey = key;
    this.isChosen = shareOf(run.run_id) < this.options.fraction;
    if (!this.isChosen) {
      this.measured.runs_left_out += 1;
      return;
    }
    this.measured.runs += 1;
    this.measured.coverage = addCoverage(this.measured.coverage, run.coverage);
  }

  async sample(run: ReadRun, sample: ReadSample): Promise<void> {
    const { spans, not_comparable } = comparableSpans(sample, this.with_.anyTemperature);
    const health: SampleHealth = { versions: [], worst: [], not_comparable, refused: null };
    if (spans.length === 0) {
      this.measured.samples.push(health);
      return;
    }
    const key = keyOf(this.with_.scorer, run, sample);
    const known = this.notes.get(key);
    if (known !== undefined) {
      this.measured.samples.push(known);
      return;
    }
    if (this.waitingTokens + lengthOf(spans) > this.options.chunkTokens) await this.flush();
    this.waiting.push({ key, run, sample, spans, health });
    this.waitingTokens += lengthOf(spans);
  }

  /** Scores what waits. After a stop nothing more is asked for: unscored samples are in no notes, and come again. */
  async flush(): Promise<void> {
    const { waiting } = this;
    this.waiting = [];
    this.waitingTokens = 0;
    const temperatures = new Set(waiting.flatMap(({ spans }) => spans.map((span) => span.temperature)));
    for (const temperature of temperatures) await this.scoreAt(waiting, temperature);
    if (this.options.signal?.aborted) return;
    for (const { key, health } of waiting) {
      this.notes.put(key, health);
      this.measured.samples.push(health);
    }
  }

  private async scoreAt(waiting: readonly Waiting[], temperature: number): Promise<void> {
    const asked = waiting.flatMap((each) => {
      const spans = each.spans.filter((span) => span.temperature === temperature);
      return spans.length === 0
        ? []
        : [{ each, spans, prompt: Array.from(each.sample.tokens).slice(0, lengthOf(spans)) }];
    });
    const prompts = asked.map(({ prompt }) => prompt);
    const scored = await this.ask(prompts, temperature);
    for (const [i, { each, spans }] of asked.entries()) {
      const scores = scored[i];
      if (scores === undefined) return;
      if (typeof scores !== "string") compare(each, spans, scores);
      else {
        const tokens = spans.reduce((sum, span) => sum + span.end - span.start, each.health.refused?.tokens ?? 0);
        each.health.refused = { tokens, why: scores };
      }
    }
  }

  /** Scores of each prompt, or why the engine refused it: one that is refused must not take its neighbours along. Empty after a stop. */
  private async ask(prompts: number[][], temperature: number): Promise<(Float64Array | string)[]> {
    const { signal } = this.options;
    try {
      if (signal?.aborted) return [];
      const all = await scorePrompts(this.with_.scorer, prompts, temperature, signal);
      if ("scores" in all) return all.scores;
      if (prompts.length === 1) return [all.refused];
      const answers: (Float64Array | string)[] = [];
      for (const prompt of prompts) answers.push(...(await this.ask([prompt], temperature)));
      return answers;
    } catch (error) {
      if (signal?.aborted) return [];
      throw error;
    }
  }
}

function compare({ run, sample, health }: Waiting, spans: readonly ComparedSpan[], scores: Float64Array): void {
  const versions = new Map(health.versions);
  for (const { start, end, turn } of spans) {
    for (let token = start; token < end; token += 1) {
      const version = versionAt(sample, turn, token);
      const [recorded, scored] = [sample.logprobs[token]!, scores[token]!];
      versions.set(version, addAgreement(versions.get(version) ?? NO_AGREEMENT, agreementOf(recorded, scored)));
      const id = sample.tokens[token]!;
      const difference = Math.abs(recorded - scored);
      const where = { run_id: run.run_id, sample: sample.sample_index, token, id, turn, version };
      health.worst.push({ ...where, recorded, scored, difference });
    }
  }
  health.versions = [...versions];
  health.worst = worstOf(health.worst);
}

/** The largest differences first; of equal ones the first. */
export function worstOf(tokens: readonly WorstToken[]): WorstToken[] {
  const differ = tokens.filter((each) => each.difference > 0);
  return differ.sort((a, b) => b.difference - a.difference).slice(0, WORST_MAX);
}

/** Nothing behind the last compared token is asked for. */
function lengthOf(spans: readonly ComparedSpan[]): number {
  return spans.reduce((length, span) => Math.max(length, span.end), 0);
}

/** In [0, 1), from the id alone. */
function shareOf(runId: string): number {
  return createHash("sha256").update(runId).digest().readUInt32BE(0) / 2 ** 32;
}

function keyOf(scorer: Scorer, run: ReadRun, sample: ReadSample): string {
  const arrays = [sample.tokens, sample.loss_mask, sample.logprobs].map((array) => Array.from(array));
  const facts = [scorer.url, scorer.model, run.run_id, run.trial_id, run.attempt, sample.sample_index];
  return createHash("sha256")
    .update(canonicalJson([facts, arrays, sample.spans, sample.turns]))
    .digest("hex");
}
