/** From what was measured to a verdict, and to tables. Pure. */
import type { Coverage } from "../build/coverage.js";
import type { ReportTable } from "../explain/report.js";
import { type Agreement, addAgreement, correlationOf, NO_AGREEMENT } from "./agreement.js";
import { type Measured, type WorstToken, worstOf } from "./health.js";

/** What a healthy capture keeps; docs/across.md says where the defaults come from. */
export interface Thresholds {
  min_correlation: number;
  max_mean_difference: number;
  max_difference: number;
  min_coverage: number;
}

export const DEFAULT_THRESHOLDS: Thresholds = {
  min_correlation: 0.999,
  max_mean_difference: 0.02,
  max_difference: 1,
  min_coverage: 0.99,
};

interface Figures {
  tokens: number;
  /** Pearson over exp(logprob); null when a variance is too small. */
  correlation: number | null;
  mean_difference: number | null;
  max_difference: number | null;
  /** Tokens that differ by more than 0.5. */
  far_tokens: number;
  /** Recorded as exactly 0 where the engine is not certain. */
  zero_tokens: number;
}

export interface Health {
  schema: "tito.health/v1";
  healthy: boolean;
  /** Which thresholds are broken, in words. */
  problems: string[];
  thresholds: Thresholds;
  engine: Measured["engine"];
  runs: number;
  runs_left_out: number;
  samples: number;
  all: Figures;
  versions: ({ version: string } & Figures)[];
  coverage: Coverage;
  trained_of_eligible: number | null;
  /** Compared ÷ trained tokens of the runs that were looked at. */
  compared_of_trained: number | null;
  not_comparable: { turns: number; tokens: number };
  refused: { tokens: number; why: string[] };
  worst: WorstToken[];
}

export function judgeHealth(measured: Measured, thresholds: Thresholds): Health {
  const { samples, coverage } = measured;
  const versions = new Map<string, Agreement>();
  for (const [version, agreement] of samples.flatMap((sample) => sample.versions))
    versions.set(version, addAgreement(versions.get(version) ?? NO_AGREEMENT, agreement));
  const all = figuresOf([...versions.values()].reduce(addAgreement, NO_AGREEMENT));
  const refused = samples.flatMap((sample) => (sample.refused === null ? [] : [sample.refused]));
  const trained_of_eligible = ratio(coverage.trained_tokens, coverage.eligible_tokens);
  const problems = problemsOf(all, trained_of_eligible, thresholds);
  return {
    schema: "tito.health/v1",
    healthy: problems.length === 0,
    problems,
    thresholds,
    engine: measured.engine,
    runs: measured.runs,
    runs_left_out: measured.runs_left_out,
    samples: samples.length,
    all,
    versions: [...versions]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([version, agreement]) => ({ version, ...figuresOf(agreement) })),
    coverage,
    trained_of_eligible,
    compared_of_trained: ratio(all.tokens, coverage.trained_tokens),
    not_comparable: {
      turns: samples.reduce((sum, sample) => sum + sample.not_comparable.turns, 0),
      tokens: samples.reduce((sum, sample) => sum + sample.not_comparable.tokens, 0),
    },
    refused: {
      tokens: refused.reduce((sum, each) => sum + each.tokens, 0),
      why: [...new Set(refused.map((each) => each.why))].slice(0, 5),
    },
    worst: worstOf(samples.flatMap((sample) => sample.worst)),
  };
}

function figuresOf(agreement: Agreement): Figures {
  const { tokens, difference_sum, difference_max, far, zeros } = agreement;
  return {
    tokens,
    correlation: correlationOf(agreement),
    mean_difference: tokens === 0 ? null : difference_sum / tokens,
    max_difference: tokens === 0 ? null : difference_max,
    far_tokens: far,
    zero_tokens: zeros,
  };
}

function problemsOf(all: Figures, coverage: number | null, limits: Thresholds): string[] {
  const { correlation, mean_difference, max_difference, zero_tokens } = all;
  if (mean_difference === null || max_difference === null) return ["no token could be compared"];
  const problems: string[] = [];
  const check = (broken: boolean, text: string) => {
    if (broken) problems.push(text);
  };
  const low = correlation !== null && correlation < limits.min_correlation;
  check(low, `correlation ${correlation} is below ${limits.min_correlation}`);
  const { max_mean_difference: mean, max_difference: max, min_coverage } = limits;
  check(mean_difference > mean, `mean difference ${mean_difference} is above ${mean}`);
  check(max_difference > max, `largest difference ${max_difference} is above ${max}`);
  check(zero_tokens > 0, `${zero_tokens} log probabilities are recorded as exactly 0 where the engine is not certain`);
  check(coverage !== null && coverage < min_coverage, `coverage ${coverage} is below ${min_coverage}`);
  return problems;
}

const number = (value: number | null) => (value === null ? "–" : String(Number(value.toPrecision(6))));
const count = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (value: number | null) => (value === null ? "–" : `${(value * 100).toFixed(2)} %`);
const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

export function renderHealth(health: Health): ReportTable[] {
  const right = "right" as const;
  const titles = ["tokens", "correlation", "mean |Δ|", "largest |Δ|", "|Δ| > 0.5", "zero"];
  const cells = (figures: Figures) => [
    count(figures.tokens),
    number(figures.correlation),
    number(figures.mean_difference),
    number(figures.max_difference),
    count(figures.far_tokens),
    count(figures.zero_tokens),
  ];
  return [
    {
      title: `${count(health.runs)} runs, ${count(health.samples)} samples scored again by ${health.engine.model}`,
      columns: [{ title: "weights" }, ...titles.map((title) => ({ title, align: right }))],
      rows: [...health.versions.map((each) => [each.version, ...cells(each)]), ["all", ...cells(health.all)]],
    },
    {
      title: "coverage",
      columns: [{ title: "what" }, { title: "", align: right }],
      rows: [
        ["trained / eligible", percent(health.trained_of_eligible)],
        ["compared / trained", percent(health.compared_of_trained)],
        ["turns that are not comparable", count(health.not_comparable.turns)],
        ["  their trained tokens", count(health.not_comparable.tokens)],
        ["tokens that the engine refused", count(health.refused.tokens)],
        ["runs left out", count(health.runs_left_out)],
      ],
    },
    {
      title: "worst tokens",
      columns: [
        { title: "recorded", align: right },
        { title: "scored", align: right },
        { title: "id", align: right },
        { title: "weights" },
        { title: "explain" },
      ],
      rows: health.worst.map((each) => [
        number(each.recorded),
        number(each.scored),
        String(each.id),
        each.version,
        `tito explain TRIALS --run ${each.run_id} --sample ${each.sample} --token ${each.token}`,
      ]),
    },
  ].filter((table) => table.rows.length > 0);
}
