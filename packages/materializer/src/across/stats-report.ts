/** Statistics as tables for people, with a small bar beside each share. Pure. */
import type { ReportTable } from "../explain/report.js";
import type { Spread, Stats } from "./sum-figures.js";

const count = (value: number) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (value: number | null) => (value === null ? "–" : `${(value * 100).toFixed(1)} %`);
const number = (value: number | null) => (value === null ? "–" : String(Number(value.toFixed(4))));
const right = "right" as const;

const BAR_CHARS = 20;
const LISTED_MAX = 40;

/** A bar of `share` of its full length; what is there at all shows at least a sliver. */
export function bar(share: number): string {
  const eighths = Math.max(share > 0 ? 1 : 0, Math.round(Math.min(1, share) * BAR_CHARS * 8));
  const rest = eighths % 8;
  return "█".repeat(Math.floor(eighths / 8)) + (rest === 0 ? "" : " ▏▎▍▌▋▊▉"[rest]!);
}

/** Every table that has a row. */
export function renderStats(stats: Stats): ReportTable[] {
  const tables = [
    tokenTable(stats),
    countTable("masked, by reason", stats.coverage.masked),
    partTable(stats),
    spreadTable(stats),
    countTable("segments opened, by reason", stats.openings),
    driftTable(stats),
    splitTable(stats),
    realignTable(stats),
    logprobTable(stats),
    cacheTable(stats),
    versionTable(stats),
    countTable("terminations", stats.terminations),
    countTable("exclusions", stats.exclusions),
    notWholeTable(stats),
  ];
  return tables.filter((table) => table.rows.length > 0);
}

function tokenTable({ coverage, ...stats }: Stats): ReportTable {
  const of = (tokens: number) => (coverage.captured_tokens === 0 ? 0 : tokens / coverage.captured_tokens);
  const row = (name: string, tokens: number) => [name, count(tokens), percent(of(tokens)), bar(of(tokens))];
  return {
    title: `${count(stats.runs)} runs in ${count(stats.groups)} groups, ${count(stats.turns)} turns, mean reward ${number(stats.reward_mean)}`,
    columns: [
      { title: "sampled tokens" },
      { title: "count", align: right },
      { title: "share", align: right },
      { title: "" },
    ],
    rows: [
      row("captured", coverage.captured_tokens),
      row("eligible", coverage.eligible_tokens),
      row("trained", coverage.trained_tokens),
      ["trained / eligible", "", percent(stats.trained_of_eligible), bar(stats.trained_of_eligible ?? 0)],
    ],
  };
}

function countTable(title: string, counts: Readonly<Record<string, number | undefined>>): ReportTable {
  const entries = Object.entries(counts).map(([name, value]): [string, number] => [name, value ?? 0]);
  const all = entries.reduce((sum, [, value]) => sum + value, 0);
  return {
    title,
    columns: [{ title: "what" }, { title: "count", align: right }, { title: "share", align: right }, { title: "" }],
    rows: entries
      .sort((a, b) => b[1] - a[1])
      .map(([name, value]) => [name, count(value), percent(value / all), bar(value / all)]),
  };
}

function partTable({ parts }: Stats): ReportTable {
  return {
    title: "by harness and model",
    columns: [
      { title: "harness" },
      { title: "model" },
      ...["runs", "turns", "samples", "openings", "captured", "trained", "of eligible", "cached"].map((title) => ({
        title,
        align: right,
      })),
    ],
    rows: parts.map((part) => [
      part.harness ?? "not recorded",
      part.model ?? "not recorded",
      ...[part.runs, part.turns, part.samples, part.openings, part.captured_tokens, part.trained_tokens].map(count),
      percent(part.eligible_tokens === 0 ? null : part.trained_tokens / part.eligible_tokens),
      percent(part.cached_share),
    ]),
  };
}

function spreadTable({ samples_per_run, sample_tokens }: Stats): ReportTable {
  const row = (name: string, spread: Spread | null) =>
    spread === null
      ? []
      : [[name, ...[spread.min, spread.p50, spread.p90, spread.p99, spread.max].map(count), number(spread.mean)]];
  return {
    title: "samples",
    columns: [{ title: "" }, ...["min", "p50", "p90", "p99", "max", "mean"].map((title) => ({ title, align: right }))],
    rows: [...row("samples a run", samples_per_run), ...row("tokens a sample", sample_tokens)],
  };
}

function driftTable({ drift }: Stats): ReportTable {
  return {
    title: "drift, by cause",
    columns: [
      { title: "cause" },
      { title: "turns", align: right },
      { title: "ids lost", align: right },
      { title: "prompt tokens read again", align: right },
    ],
    rows: Object.entries(drift).map(([cause, cost]) => [
      cause,
      count(cost.turns),
      count(cost.lost_tokens),
      count(cost.reread_tokens),
    ]),
  };
}

function splitTable({ split }: Stats): ReportTable {
  if (split.samples === 0) return { title: "", columns: [], rows: [] };
  const share = split.sample_tokens === 0 ? 0 : split.repeated_tokens / split.sample_tokens;
  return {
    title: "what splitting costs a trainer",
    columns: [{ title: "what" }, { title: "tokens", align: right }, { title: "share", align: right }, { title: "" }],
    rows: [
      ["tokens of all samples", count(split.sample_tokens), "", ""],
      ["  that an earlier sample begins with too", count(split.repeated_tokens), percent(share), bar(share)],
    ],
  };
}

function realignTable({ realign }: Stats): ReportTable {
  const useful = realign.filter((each, i) => {
    const before = realign[i - 1];
    const changes = each.samples_saved !== 0 || each.trained_tokens_lost !== 0;
    return changes && (before === undefined || before.samples_saved !== each.samples_saved);
  });
  return {
    title: "what --realign-max-lost-tokens would save and lose",
    columns: [
      { title: "bound", align: right },
      { title: "samples saved", align: right },
      { title: "repeated tokens saved", align: right },
      { title: "trained tokens lost", align: right },
    ],
    rows: useful.map((each) =>
      [each.bound, each.samples_saved, each.repeated_tokens_saved, each.trained_tokens_lost].map(count),
    ),
  };
}

function logprobTable({ logprobs, coverage }: Stats): ReportTable {
  const all = coverage.trained_tokens;
  return {
    title: `log probabilities of trained tokens, mean ${number(logprobs.mean)}`,
    columns: [
      { title: "from", align: right },
      { title: "to", align: right },
      { title: "tokens", align: right },
      { title: "share", align: right },
      { title: "" },
    ],
    rows: logprobs.classes
      .filter(({ tokens }) => tokens > 0)
      .map(({ from, to, tokens }) => [
        from === null ? "" : String(from),
        String(to),
        count(tokens),
        percent(tokens / all),
        bar(tokens / all),
      ]),
  };
}

function cacheTable({ cache, turns }: Stats): ReportTable {
  const reported = turns - cache.turns_unreported;
  return {
    title: "prefix cache, as engines report it",
    columns: [
      { title: "turns that report it", align: right },
      { title: "prompt tokens", align: right },
      { title: "cached", align: right },
      { title: "share", align: right },
      { title: "" },
    ],
    rows:
      reported === 0
        ? []
        : [
            [
              `${count(reported)} of ${count(turns)}`,
              count(cache.prompt_tokens),
              count(cache.cached_tokens),
              percent(cache.share),
              bar(cache.share ?? 0),
            ],
          ],
  };
}

function versionTable({ versions, coverage }: Stats): ReportTable {
  const rows = versions.slice(0, LISTED_MAX).map(({ version, age, tokens }) => {
    const share = coverage.captured_tokens === 0 ? 0 : tokens / coverage.captured_tokens;
    return [version, age === null ? "–" : count(age), count(tokens), percent(share), bar(share)];
  });
  if (versions.length > rows.length) rows.push([`and ${versions.length - rows.length} more`, "", "", "", ""]);
  return {
    title: "weight versions",
    columns: [
      { title: "version" },
      { title: "age", align: right },
      { title: "sampled", align: right },
      { title: "share", align: right },
      { title: "" },
    ],
    rows,
  };
}

function notWholeTable({ not_whole }: Stats): ReportTable {
  const rows = not_whole.slice(0, LISTED_MAX).map(({ run_id, why }) => [run_id, why]);
  if (not_whole.length > rows.length) rows.push([`and ${not_whole.length - rows.length} more`, "--json lists all"]);
  return { title: "runs that are not whole", columns: [{ title: "run" }, { title: "why" }], rows };
}
