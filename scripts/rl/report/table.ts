/** The table at the end: a row an arm. */
import { HABITS } from "../habits/habit.js";
import type { ArmName } from "../loop/options.js";
import type { PooledArm, Share } from "./pooled.js";

export const ARM_TITLES: Readonly<Record<ArmName, string>> = {
  tito: "tito samples",
  transcript: "transcript",
  careful: "careful transcript",
};

const HEADERS = [
  "trained on",
  "held-out solved at start",
  "at the end",
  "95 % interval",
  "calc/think/guess",
  "tokens trained",
  "never sampled there",
  "trainer − recorded",
  "own |ratio − 1|",
  "mean log π",
  "seconds",
];

/** Lines of the table, columns aligned; `markdown` gives the same cells as a Markdown table. */
export function formatTable(arms: readonly PooledArm[], { markdown = false } = {}): string {
  const rows = [HEADERS, ...arms.map(cellsOf)];
  if (markdown) {
    const lines = rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`);
    return [lines[0], `|${"---|".repeat(HEADERS.length)}`, ...lines.slice(1)].join("\n");
  }
  const widths = HEADERS.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function cellsOf(arm: PooledArm): string[] {
  const [start, end] = [arm.heldOut.get(0), arm.heldOut.get(arm.lastVersion)];
  const played = HABITS.reduce((sum, habit) => sum + arm.habits[habit], 0);
  const never = arm.tokensTrained === 0 ? 0 : arm.tokensNeverSampled / arm.tokensTrained;
  return [
    ARM_TITLES[arm.arm],
    start === undefined ? "–" : percentOf(start),
    end === undefined || arm.lastVersion === 0 ? "–" : percentOf(end),
    end === undefined || arm.lastVersion === 0 ? "–" : `${percent(end.low)}–${percent(end.high)} %`,
    played === 0 ? "–" : `${HABITS.map((habit) => percent(arm.habits[habit] / played)).join("/")} %`,
    String(arm.tokensTrained),
    `${arm.tokensNeverSampled} (${(100 * never).toFixed(1)} %)`,
    arm.recordedOffMax === null ? "–" : arm.recordedOffMax.toExponential(1),
    arm.ratioOffMax === 0 ? "0" : arm.ratioOffMax.toExponential(1),
    `${logprob(arm.firstMeanLogprob)} → ${logprob(arm.lastMeanLogprob)}`,
    arm.seconds.toFixed(0),
  ];
}

/** A share in whole percent, without the sign. */
export const percent = (share: number): string => String(Math.round(100 * share));
const percentOf = ({ solved, rollouts }: Share): string => `${percent(solved / rollouts)} % (${solved}/${rollouts})`;
const logprob = (value: number | null): string => (value === null ? "–" : value.toFixed(3));
