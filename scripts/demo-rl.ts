/** `npm run demo:rl`: the RL loop closes on a laptop. Real harnesses play, tito records, samples train the policy, the engine takes its weights. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseFlags, resumeCommand, USAGE } from "./rl/flags.js";
import type { ArmOptions } from "./rl/loop/arm.js";
import type { IterationRow } from "./rl/loop/iteration-row.js";
import { runArms } from "./rl/loop/run-arms.js";
import { CannotResume } from "./rl/loop/run-state.js";
import { drawCurves } from "./rl/report/curves.js";
import { resultsJson } from "./rl/report/json.js";
import { type ArmResult, poolArm } from "./rl/report/pooled.js";
import { formatTable } from "./rl/report/table.js";
import { closingWords, openingWords, rowLine } from "./rl/report/words.js";

const START_DIR = resolve(import.meta.dirname, "../fixtures/habits");

const parsed = parseFlags(process.argv.slice(2));
if (parsed.kind === "help") {
  console.log(USAGE);
  process.exit(0);
}
if (parsed.kind === "usage") {
  console.error(`demo:rl: ${parsed.problem}\nnpm run demo:rl -- --help says what there is`);
  process.exit(64);
}
const { flags } = parsed;
/** With --json the document is all that standard output gets. */
const say = flags.json ? console.error : console.log;
const startedMs = Date.now();
const out = flags.out === null ? mkdtempSync(join(tmpdir(), "tito-rl-")) : resolve(flags.out);
mkdirSync(out, { recursive: true });

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interrupted.abort());

try {
  say(openingWords(flags, out, START_DIR));
  const results: ArmResult[] = [];
  for (const seed of flags.seeds) {
    if (flags.seeds.length > 1) say(`\nseed ${seed}`);
    results.push(...(await runSeed(seed)));
  }
  finish(results);
} catch (error) {
  if (interrupted.signal.aborted) {
    say(`\ninterrupted; no process is left. Go on: ${resumeCommand(process.argv.slice(2), out)}`);
    process.exitCode = 130;
  } else {
    console.error(`demo:rl: ${error instanceof CannotResume ? error.message : ((error as Error).stack ?? error)}`);
    process.exitCode = error instanceof CannotResume ? 64 : 1;
  }
}

async function runSeed(seed: number): Promise<ArmResult[]> {
  const arms = flags.arms.map(
    (arm): ArmOptions => ({
      arm,
      options: { ...flags.loop, seed },
      dir: join(out, `seed-${seed}`, arm),
      startDir: START_DIR,
      resume: flags.resume,
      python: flags.python,
    }),
  );
  const onRow = ({ arm }: ArmOptions, row: IterationRow) => say(rowLine((Date.now() - startedMs) / 1000, arm, row));
  return runArms({ arms, signal: interrupted.signal, onRow });
}

function finish(results: readonly ArmResult[]): void {
  const arms = flags.arms.map((arm) => poolArm(results.filter((result) => result.arm === arm)));
  const { tasks, rolloutsPerTask } = flags.loop;
  const caption = `${tasks} × ${rolloutsPerTask} rollouts a step, seeds ${flags.seeds.join(", ")}`;
  writeFileSync(join(out, "curves.svg"), drawCurves(arms, caption));
  writeFileSync(join(out, "table.md"), `${formatTable(arms, { markdown: true })}\n`);
  const document = resultsJson(flags, results, arms);
  writeFileSync(join(out, "results.json"), document);
  say(`\n${formatTable(arms)}\n`);
  say(closingWords(arms, out, (Date.now() - startedMs) / 1000));
  if (flags.json) process.stdout.write(document);
}
