/** The picture: solved training rollouts by iteration, and held-out tasks with their intervals at both ends. */
import type { ArmName } from "../loop/options.js";
import type { PooledArm, Share } from "./pooled.js";
import { ARM_TITLES } from "./table.js";

const WIDTH = 820;
const HEIGHT = 380;
const LEFT = 56;
const RIGHT = 240;
const TOP = 44;
const BOTTOM = 48;
const COLORS: Readonly<Record<ArmName, string>> = { tito: "#1a7f37", transcript: "#cf222e", careful: "#0969da" };
/** Held-out marks of several arms at one version stand beside each other. */
const MARK_STEP = 9;

/** An SVG that needs nothing from outside and reads on light and dark pages. */
export function drawCurves(arms: readonly PooledArm[], caption: string): string {
  const iterations = Math.max(1, ...arms.map(({ curve }) => curve.length));
  const x = (iteration: number) => LEFT + ((WIDTH - LEFT - RIGHT) * iteration) / iterations;
  const y = (share: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12">`,
    "<title>Tasks solved by optimizer step, for each kind of training data</title>",
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(LEFT, 20, "Tasks solved, by optimizer step", 'font-size="15" font-weight="600"'),
    text(LEFT, 36, caption, 'fill="#57606a"'),
    ...[0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(share)}" y2="${y(share)}" stroke="#d0d7de"/>`,
      text(LEFT - 8, y(share) + 4, `${100 * share} %`, 'text-anchor="end" fill="#57606a"'),
    ]),
    ...Array.from({ length: iterations + 1 }, (_, step) =>
      text(x(step), HEIGHT - BOTTOM + 18, String(step), 'text-anchor="middle" fill="#57606a"'),
    ),
    text(
      (LEFT + WIDTH - RIGHT) / 2,
      HEIGHT - 12,
      "line: rollouts that were trained on · mark: held-out tasks, with 95 % interval",
      'text-anchor="middle" fill="#57606a"',
    ),
    ...arms.flatMap((arm, index) => drawArm(arm, (index - (arms.length - 1) / 2) * MARK_STEP, x, y)),
    ...arms.flatMap((arm, index) => drawLegend(arm, TOP + 14 + index * 40)),
    "</svg>",
    "",
  ].join("\n");
}

function drawArm(arm: PooledArm, offset: number, x: (step: number) => number, y: (share: number) => number): string[] {
  const color = COLORS[arm.arm];
  const points = arm.curve.map(({ solved, rollouts }, step) => `${round(x(step))},${round(y(solved / rollouts))}`);
  const marks = [...arm.heldOut].map(([version, share]) => drawMark(share, x(version) + offset, y, color));
  return [`<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="2"/>`, ...marks];
}

function drawMark(
  { solved, rollouts, low, high }: Share,
  at: number,
  y: (share: number) => number,
  color: string,
): string {
  const [middle, top, bottom] = [y(solved / rollouts), y(high), y(low)].map(round);
  const left = round(at);
  return [
    `<line x1="${left}" x2="${left}" y1="${top}" y2="${bottom}" stroke="${color}" stroke-width="1.5"/>`,
    `<circle cx="${left}" cy="${middle}" r="4" fill="#ffffff" stroke="${color}" stroke-width="2"/>`,
  ].join("");
}

function drawLegend(arm: PooledArm, at: number): string[] {
  const left = WIDTH - RIGHT + 24;
  const never = arm.tokensTrained === 0 ? 0 : (100 * arm.tokensNeverSampled) / arm.tokensTrained;
  return [
    `<line x1="${left}" x2="${left + 20}" y1="${at - 4}" y2="${at - 4}" stroke="${COLORS[arm.arm]}" stroke-width="3"/>`,
    text(left + 26, at, ARM_TITLES[arm.arm], 'font-weight="600"'),
    text(left + 26, at + 15, `${never.toFixed(0)} % never sampled there`, 'fill="#57606a"'),
  ];
}

function text(left: number, top: number, content: string, attributes: string): string {
  const escaped = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${round(left)}" y="${round(top)}" fill="#1f2328" ${attributes}>${escaped}</text>`.replace(
    /fill="#1f2328" (.*?)fill=/,
    "$1fill=",
  );
}

const round = (value: number): number => Math.round(10 * value) / 10;
