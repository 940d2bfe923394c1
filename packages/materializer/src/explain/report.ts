/** Reports and explanations as tables and lines that a terminal can show. Pure. */

import type { Report } from "../jobs/materialize.js";
import type { TokenExplanation } from "./explain-token.js";
import type { Side, TurnExplanation } from "./explain-turn.js";

export interface ReportTable {
  title: string;
  columns: { title: string; align?: "left" | "right" }[];
  rows: string[][];
}

/** Thousands apart; the system's own way would load all locales first. */
const count = (value: number) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (value: number | null) => (value === null ? "–" : `${(value * 100).toFixed(1)} %`);
const number = (value: number | null) => (value === null ? "–" : String(Number(value.toFixed(4))));

const NAME_CHARS_MAX = 64;
/** A name with its middle left out when it is longer than a table can take. */
const bounded = (name: string) =>
  name.length <= NAME_CHARS_MAX ? name : `${name.slice(0, NAME_CHARS_MAX / 2)}…${name.slice(-NAME_CHARS_MAX / 2 + 1)}`;

/** What a materialization did, as tables; the last is one line a run, at most `runsMax`. */
export function renderReport(report: Report, runsMax = 40): ReportTable[] {
  const { manifest } = report;
  const { counts, coverage } = manifest;
  const tables: ReportTable[] = [
    {
      title: "materialized",
      columns: [{ title: "what" }, { title: "count", align: "right" }],
      rows: [
        ["runs", count(counts.runs)],
        ["  with a reward", count(counts.rewarded_runs)],
        ["  excluded", count(Object.values(manifest.exclusions).reduce((a, b) => a + b, 0))],
        ["groups", count(counts.groups)],
        ["trajectories", count(counts.trajectories)],
        ["turns", count(counts.turns)],
        ["samples", count(counts.samples)],
        ["  that train nothing", count(counts.samples_untrained)],
        ["tokens", count(counts.tokens)],
        ["sampled tokens captured", count(coverage.captured_tokens)],
        ["sampled tokens trained", count(coverage.trained_tokens)],
        ["trained / eligible", percent(manifest.trained_of_eligible)],
        ["trained / captured", percent(manifest.trained_of_captured)],
        ["mean reward", number(manifest.reward_mean)],
        ...continuityRows(manifest.findings),
        ...toolRows(manifest.tool_use),
      ],
    },
    countTable("masked sampled tokens", "reason", coverage.masked),
    countTable("excluded runs", "reason", manifest.exclusions),
    countTable("terminations", "ending", manifest.terminations),
    countTable("groups that train nothing or lost members", "flag", manifest.group_flags),
    countTable("calls without ids", "reason", manifest.uncaptured),
    ...findingTables(manifest.findings),
    runTable(report, runsMax),
  ];
  return tables.filter((table) => table.rows.length > 0);
}

function continuityRows(findings: Findings): string[][] {
  if (findings === undefined) return [];
  const { continuity } = findings;
  const known = continuity.prompts_not_compared > 0 ? ` (of ${count(continuity.prompts_compared)} compared)` : "";
  return [
    [
      `turns whose prompt differs from canonical replay${known}`,
      count(continuity.prompt_differs_from_canonical_replay),
    ],
    ["tokens trained but not sampled", count(continuity.trained_but_not_sampled)],
  ];
}

type Findings = Report["manifest"]["findings"];

function findingTables(findings: Findings): ReportTable[] {
  if (findings === undefined) return [];
  const right = "right" as const;
  return [
    {
      title: "capture loss",
      columns: [
        { title: "engine" },
        { title: "sampled", align: right },
        { title: "ids lost", align: right },
        { title: "turns without some ids", align: right },
        { title: "without a count", align: right },
        { title: "calls without any", align: right },
      ],
      rows: findings.capture_loss.map((loss) => [
        bounded(loss.engine),
        count(loss.sampled_tokens),
        count(loss.lost_tokens),
        `${count(loss.lost_turns)} of ${count(loss.turns)}`,
        count(loss.uncounted_turns),
        count(loss.lost_calls),
      ]),
    },
    {
      title: "text that changes by itself",
      columns: [
        { title: "text" },
        { title: "segments opened", align: right },
        { title: "prompt tokens read again", align: right },
      ],
      rows: findings.volatile_text.map((cost) => [cost.text, count(cost.segments), count(cost.reread_tokens)]),
    },
  ];
}

/** Only where tools were offered at all. */
function toolRows(use: Report["manifest"]["tool_use"]): string[][] {
  if (use === undefined || use.offered_turns === 0) return [];
  return [
    ["turns that were offered tools", count(use.offered_turns)],
    ["  that called one", count(use.called_turns)],
    ...(use.unparsed_turns > 0 ? [["  whose text looks like an unparsed call", count(use.unparsed_turns)]] : []),
  ];
}

function countTable(title: string, name: string, counts: Readonly<Record<string, number | undefined>>): ReportTable {
  const rows = Object.entries(counts).map(([key, value]) => [key, count(value ?? 0)]);
  return { title, columns: [{ title: name }, { title: "count", align: "right" }], rows };
}

function runTable(report: Report, runsMax: number): ReportTable {
  const right = "right" as const;
  const rows = report.runs
    .slice(0, runsMax)
    .map((run) => [
      bounded(run.run_id),
      bounded(run.group_id),
      number(run.reward),
      number(run.advantage),
      count(run.turns),
      count(run.samples),
      count(run.coverage.captured_tokens),
      count(run.coverage.trained_tokens),
      bounded(run.excluded ?? run.termination),
    ]);
  const more = report.runs.length - rows.length;
  if (more > 0) rows.push([`and ${count(more)} more`, "", "", "", "", "", "", "", ""]);
  return {
    title: "runs",
    columns: [
      { title: "run" },
      { title: "group" },
      { title: "reward", align: right },
      { title: "advantage", align: right },
      { title: "turns", align: right },
      { title: "samples", align: right },
      { title: "captured", align: right },
      { title: "trained", align: right },
      { title: "ending" },
    ],
    rows,
  };
}

/** An explanation of a token as plain text. */
export function renderTokenExplanation(one: TokenExplanation): string {
  const shown = one.text === null ? String(one.id) : `${one.id} ${JSON.stringify(one.text)}`;
  const where =
    one.sampled_index === null
      ? `brought by the prompt of turn ${one.turn}`
      : `sampled id ${one.sampled_index} of turn ${one.turn}`;
  const lines = [
    `token ${one.token} of ${one.tokens}   id ${shown}   run ${one.run_id}, sample ${one.sample} of ${one.samples}`,
    `  loss mask ${one.loss_mask}   ${one.reason}: ${one.why}`,
    ...(one.owner === null ? [] : [`  owned by sample ${one.owner}`]),
    ...runLines(one),
    ...(one.logprob === null
      ? []
      : [`  logprob ${one.logprob}${one.weight_version === null ? "" : `   weights ${one.weight_version}`}`]),
    `  ${where}   call ${one.call_id}   lane ${one.lane}   finish ${one.finish_reason}   delivery ${one.delivery}`,
    `  ${one.trajectory}/${one.file}   offset ${one.offset}   ${one.bytes} bytes   segment ${one.segment}`,
    `  span ${one.span.start} to ${one.span.end} (${one.kind})`,
    `  exact prompt: ${one.prefix.tokens} tokens`,
    `    recorded   sha256 ${one.prefix.recorded_sha256}`,
    `    recomputed sha256 ${one.prefix.recomputed_sha256}   ${one.prefix.equal ? "equal" : "DIFFERENT"}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** What the mask does not tell: the whole run weighs nothing. */
function runLines(one: TokenExplanation): string[] {
  if (one.excluded !== null) return [`  the run is excluded (${one.excluded}): weight 0, no advantage`];
  return one.reward === null ? ["  the run has no reward: weight 0, no advantage"] : [];
}

/** An explanation of a turn as plain text. */
export function renderTurnExplanation(one: TurnExplanation): string {
  const lines = [
    `turn ${one.turn} of ${one.turns}   call ${one.call_id}   commit ${one.commit ?? "none"}   trajectory ${one.trajectory_id}`,
    `  ${one.file}   offset ${one.offset}   ${one.bytes} bytes   segment ${one.segment}`,
    `  lane ${one.lane}   finish ${one.finish_reason}   delivery ${one.delivery}${one.defects.length > 0 ? `   defects ${one.defects.join(", ")}` : ""}`,
    ...(one.damage === null ? [] : [`  damaged: ${one.damage}`]),
    `  prompt ${one.prompt_tokens} tokens${one.cached_tokens === null ? "" : ` (${one.cached_tokens} cached of ${one.expected_prefix_tokens} expected)`}, sampled ${one.sampled_tokens}`,
    `  decision: ${one.decision}, ${one.reason}`,
    ...(one.cause === null ? [] : [`  cause: ${one.cause}${one.cause_detail === null ? "" : `, ${one.cause_detail}`}`]),
    ...(one.fallback === null
      ? []
      : [`  rendered in full although incremental mode was on: ${one.fallback.reason}, ${one.fallback.detail}`]),
    ...differenceLines(one),
    ...one.verdicts.map(
      (verdict) => `  sampled ids ${verdict.start} to ${verdict.end}: ${verdict.reason}: ${verdict.why}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function differenceLines(one: TurnExplanation): string[] {
  if (one.against_turn === null) return ["  compared with no earlier turn"];
  if (one.difference === null)
    return [`  contains all ${one.match_tokens} tokens up to the end of turn ${one.against_turn}`];
  return [
    `  agrees with turn ${one.against_turn} for ${one.match_tokens} tokens; ${one.lost_tokens} of its tokens are not repeated, ${one.lost_sampled_tokens} sampled ones among them`,
    `  first difference at token ${one.difference.at}`,
    `    before    ${sideText(one.difference.expected, "before")}`,
    `    recorded  ${sideText(one.difference.expected, "from")}`,
    `    this call ${sideText(one.difference.actual, "from")}`,
  ];
}

function sideText(side: Side, part: "before" | "from"): string {
  const ids = `[${side[part].join(" ")}]`;
  const text = part === "before" ? side.before_text : side.from_text;
  return side[part].length === 0 ? "(ends here)" : text === null ? ids : `${JSON.stringify(text)}  ${ids}`;
}
