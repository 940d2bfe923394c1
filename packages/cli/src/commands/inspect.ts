import { existsSync } from "node:fs";
import { findTrajectories, TitoError } from "@tito/format";
import type { Inspection } from "@tito/materializer";
import { reportFailure, tryReading } from "../fail.js";
import { formatCount, renderTable } from "../table.js";
import { collect, type Register } from "./command.js";
import { readLaneRules } from "./lane-rules.js";

/** `tito inspect`: what a trajectory holds, as a table. */
export const registerInspect: Register = (program, outcome) => {
  program
    .command("inspect")
    .summary("what a trajectory holds: segments, turns, drift, what is missing")
    .description(
      "Prints every trajectory below PATH: its segments and why each was opened, its turns, what drifted and what that cost, what is missing.",
    )
    .argument("<path...>", "trajectory directories, or directories that hold some")
    .option("--lane-rules <file>", "rules of your own that tell side calls apart (repeatable)", collect)
    .option("--json", "one JSON object a trajectory, one a line")
    .action(async (paths: string[], flags: { json?: boolean; laneRules?: string[] }) => {
      const { inspectTrajectory, loadPolicy, lossWords } = await import("@tito/materializer");
      const policy = loadPolicy(null, { laneRules: await readLaneRules(flags.laneRules) });
      const unread = (error: TitoError): void => {
        outcome.exitCode = Math.max(outcome.exitCode, reportFailure(error, flags.json === true));
      };
      const missing = paths.find((path) => !existsSync(path));
      if (missing !== undefined) throw new TitoError("not_found", `${missing} does not exist`);
      const found = findTrajectories(paths, unread);
      if (found.length === 0) {
        throw new TitoError("not_found", `no trajectory below ${paths.join(", ")}`, {
          hint: "a trajectory is a directory with a manifest.json, a journal.seg or segments/*.seg",
        });
      }
      for (const dir of found) {
        const inspection = tryReading(() => inspectTrajectory(dir, policy), unread);
        if (inspection === null) continue;
        console.log(flags.json === true ? JSON.stringify(inspection) : renderInspection(inspection, lossWords));
      }
    });
};

type LossWords = (loss: Inspection["capture_loss"][number]) => string;

function renderInspection(one: Inspection, lossWords: LossWords): string {
  const missing = [
    ...Object.entries(one.uncaptured).map(([reason, count]) => `${count} without ids (${reason})`),
    ...(one.dangling_calls > 0 ? [`${one.dangling_calls} dangling`] : []),
  ];
  const blocks = [
    `trajectory ${one.trajectory_id}  ·  ${one.status}${one.reasons.length > 0 ? `: ${one.reasons.join("; ")}` : ""}`,
    `  ${one.dir}`,
    `  calls ${one.calls} · turns ${one.turns.length} · segments ${one.segments.length} · boots ${one.boots} · replays ${one.replays}${missing.length > 0 ? ` · ${missing.join(" · ")}` : ""}`,
    ...(one.last_uncaptured === null ? [] : [`  the last without ids: ${uncapturedWords(one.last_uncaptured)}`]),
    `  ${continuityWords(one.continuity)}`,
    ...one.capture_loss.map((loss) => `  CAPTURE LOSS  ${lossWords(loss)}`),
    "",
    renderSegments(one),
    "",
    renderTurns(one),
  ];
  for (const suspect of one.side_call_suspects) blocks.push(suspectWords(suspect, one.dir));
  if (one.volatile_text.length > 0) blocks.push("", renderVolatile(one));
  if (one.warning !== null) blocks.push("", `  warning: ${one.warning}`);
  const causes = Object.entries(one.drift.causes);
  if (causes.length > 0) blocks.push("", renderDrift(causes));
  for (const gap of one.gaps) blocks.push(`  gap in ${gap.file}: ${gap.reason}, ${gap.detail}`);
  return `${blocks.join("\n")}\n`;
}

/** The two figures of docs/continuity.md. */
function continuityWords(figures: Inspection["continuity"]): string {
  const { prompts_compared: compared, prompts_not_compared: left } = figures;
  const rest = left > 0 ? `, ${left} not compared` : "";
  return `prompt differs from canonical replay: ${figures.prompt_differs_from_canonical_replay} of ${compared} turns${rest} · trained but not sampled: ${figures.trained_but_not_sampled} tokens`;
}

function suspectWords({ turn, lane, trained_tokens, signs }: Inspection["side_call_suspects"][number], dir: string) {
  return `  turn ${turn} (${lane}) looks like a side call and trains ${trained_tokens} tokens: ${signs.join("; ")}: tito explain ${dir} --turn ${turn}`;
}

function renderVolatile(one: Inspection): string {
  return renderTable(
    [
      { title: "text that changes by itself" },
      { title: "segments", align: "right" },
      { title: "prompt tokens read again", align: "right" },
    ],
    one.volatile_text.map((cost) => [cost.text, String(cost.segments), formatCount(cost.reread_tokens)]),
  );
}

function uncapturedWords(call: NonNullable<Inspection["last_uncaptured"]>): string {
  return `${call.status ?? call.reason}, ${call.detail.replace(/\s+/g, " ").slice(0, 200)}`;
}

function renderSegments(one: Inspection): string {
  return renderTable(
    [
      { title: "segment", align: "right" },
      { title: "opened by" },
      { title: "begins with" },
      { title: "turns", align: "right" },
      { title: "line ids", align: "right" },
      { title: "sampled", align: "right" },
      { title: "state" },
    ],
    one.segments.map((segment) => [
      String(segment.segment),
      segment.opened_by,
      segment.parent,
      String(segment.turns),
      segment.line_tokens === null ? "?" : formatCount(segment.line_tokens),
      formatCount(segment.sampled_tokens),
      segment.state,
    ]),
  );
}

function renderTurns(one: Inspection): string {
  return renderTable(
    [
      { title: "turn", align: "right" },
      { title: "segment", align: "right" },
      { title: "lane" },
      { title: "decision" },
      { title: "prompt", align: "right" },
      { title: "kept", align: "right" },
      { title: "cached", align: "right" },
      { title: "sampled", align: "right" },
      { title: "finish" },
      { title: "delivery" },
      { title: "notes" },
    ],
    one.turns.map((turn) => [
      String(turn.turn),
      String(turn.segment),
      turn.lane,
      turn.decision === "append" ? "append" : `${turn.decision}: ${turn.reason}`,
      turn.prompt_tokens === null ? "?" : formatCount(turn.prompt_tokens),
      formatCount(turn.kept_tokens),
      turn.cached_tokens === null
        ? "-"
        : `${formatCount(turn.cached_tokens)} of ${formatCount(turn.expected_prefix_tokens)}`,
      formatCount(turn.sampled_tokens),
      turn.finish_reason,
      turn.delivery,
      [...(turn.cause === null ? [] : [turn.cause]), ...turn.flags].join(", "),
    ]),
  );
}

function renderDrift(causes: [string, { turns: number; lost_tokens: number; reread_tokens: number }][]): string {
  return renderTable(
    [
      { title: "drift" },
      { title: "turns", align: "right" },
      { title: "ids lost", align: "right" },
      { title: "ids read again", align: "right" },
    ],
    causes.map(([cause, cost]) => [
      cause,
      String(cost.turns),
      formatCount(cost.lost_tokens),
      formatCount(cost.reread_tokens),
    ]),
  );
}
