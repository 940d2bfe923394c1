/** The promises of one run, checked from what was read back. Pure. */
import { assertCoverage } from "../build/coverage.js";
import { INELIGIBLE_REASONS, type MaskReason } from "../recipe/reasons.js";
import type { AuditedCredit } from "./credit-audit.js";
import { advantageOf, type ReadRun, type ReadSample } from "./read-output.js";

const WEIGHT_TOLERANCE = 1e-9;

/** Takes a run's samples one by one; {@link RunAudit.end} compares their sums with what the run says. */
export class RunAudit {
  private readonly counted = new Map<string, number>();
  private samples = 0;
  private weight = 0;
  private readonly where: string;
  /** For the audit of rewards and advantages over all runs. */
  readonly credit: AuditedCredit;

  constructor(
    readonly run: ReadRun,
    file: string,
    private readonly problem: (text: string) => void,
  ) {
    this.where = `${file}: run ${run.run_id}`;
    this.credit = { run, where: this.where, samples: [] };
  }

  isAbout(run: ReadRun): boolean {
    const mine = this.run;
    return run.run_id === mine.run_id && run.trial_id === mine.trial_id && run.attempt === mine.attempt;
  }

  sample(sample: ReadSample): void {
    const where = `${this.where} sample ${sample.sample_index}`;
    if (sample.sample_index !== this.samples) this.problem(`${where}: expected sample ${this.samples}`);
    this.samples += 1;
    this.weight += sample.weight;
    if (sample.tokens.length !== sample.loss_mask.length || sample.tokens.length !== sample.logprobs.length) {
      this.problem(`${where}: arrays differ in length`);
      return;
    }
    this.spans(sample, where);
    this.advantage(sample, where);
    const turns = sample.spans.filter((span) => span.kind === "action").map((span) => span.turn);
    this.credit.samples.push({ advantage: advantageOf(sample), turns, trajectory_id: sample.trajectory_id });
  }

  private spans(sample: ReadSample, where: string): void {
    let at = 0;
    let trained = 0;
    for (const span of sample.spans) {
      if (span.start !== at || span.end <= span.start)
        this.problem(`${where}: spans leave a hole or overlap at token ${at}`);
      at = span.end;
      const trains = span.reason === "trained";
      if (trains && span.kind !== "action") this.problem(`${where}: token ${span.start} trains and was not sampled`);
      if (span.kind !== "action" && span.reason !== span.kind)
        this.problem(`${where}: a ${span.kind} span has reason ${span.reason}`);
      this.tokens(sample, span, where);
      if (span.kind === "action" && span.reason !== "shared_prefix") this.count(span.reason, span.end - span.start);
      if (trains) trained += span.end - span.start;
    }
    if (at !== sample.tokens.length) this.problem(`${where}: spans end at token ${at} of ${sample.tokens.length}`);
    if (trained !== sample.trained_tokens)
      this.problem(`${where}: ${trained} tokens train, the sample says ${sample.trained_tokens}`);
  }

  private tokens(sample: ReadSample, span: ReadSample["spans"][number], where: string): void {
    const wrong = firstWrongToken(sample, span);
    if (wrong !== null) this.problem(`${where}: ${wrong}`);
  }

  private advantage(sample: ReadSample, where: string): void {
    const advantage = advantageOf(sample);
    const actions = sample.spans.filter((span) => span.kind === "action").length;
    if (typeof advantage === "object" && advantage !== null && advantage.length !== actions)
      this.problem(`${where}: ${advantage.length} advantages for ${actions} action spans`);
    if (this.run.excluded !== null && (advantage !== null || sample.weight !== 0))
      this.problem(`${where}: excluded, and has an advantage or a weight`);
    if (sample.trained_tokens === 0 && sample.weight !== 0) this.problem(`${where}: trains nothing, and has a weight`);
  }

  private count(reason: string, tokens: number): void {
    this.counted.set(reason, (this.counted.get(reason) ?? 0) + tokens);
  }

  /** Compares the sums; returns the weight of the run's samples. */
  end(): number {
    const { coverage, outside, weight } = this.run;
    for (const each of outside) this.count(each.reason, each.tokens);
    const said = new Map<string, number>([["trained", coverage.trained_tokens], ...Object.entries(coverage.masked)]);
    for (const reason of new Set([...said.keys(), ...this.counted.keys()])) {
      const [have, should] = [this.counted.get(reason) ?? 0, said.get(reason) ?? 0];
      if (have !== should) this.problem(`${this.where}: ${have} tokens are ${reason}, its coverage says ${should}`);
    }
    this.sums();
    if (Math.abs(this.weight - weight) > WEIGHT_TOLERANCE * Math.max(1, weight)) {
      this.problem(`${this.where}: sample weights sum to ${this.weight}, the run weighs ${weight}`);
    }
    return this.weight;
  }

  private sums(): void {
    const { coverage } = this.run;
    try {
      assertCoverage(coverage, this.where, "damaged");
    } catch (error) {
      this.problem(error instanceof Error ? error.message : String(error));
    }
    let ineligible = 0;
    for (const [reason, tokens] of Object.entries(coverage.masked))
      if (INELIGIBLE_REASONS.has(reason as MaskReason)) ineligible += tokens;
    if (coverage.eligible_tokens !== coverage.captured_tokens - ineligible)
      this.problem(`${this.where}: eligible_tokens does not follow from its coverage`);
  }
}

/** The first token of a span whose mask or logprob is not what its reason says, in words. */
function firstWrongToken(sample: ReadSample, span: ReadSample["spans"][number]): string | null {
  const mask = span.reason === "trained" ? 1 : 0;
  for (let i = span.start; i < Math.min(span.end, sample.tokens.length); i += 1) {
    const logprob = sample.logprobs[i]!;
    if (sample.loss_mask[i] !== mask)
      return `token ${i} has loss mask ${sample.loss_mask[i]} in a span of reason ${span.reason}`;
    if (!Number.isFinite(logprob)) return `token ${i} has logprob ${logprob}`;
    if (span.kind !== "action" && logprob !== 0) return `token ${i} was not sampled and has logprob ${logprob}`;
  }
  return null;
}
