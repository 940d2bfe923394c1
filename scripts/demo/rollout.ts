/** One rollout of the demo: real Pi, a fresh home, a throw-away directory, a verifier that looks at the work. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type DemoTask, SYSTEM_PROMPT, workDirectory } from "@tito/reference-engine";
import { root, tito } from "./processes.js";

const ROLLOUT_TIMEOUT_MS = 120_000;
const ANSWER_BYTES_MAX = 1000;

export interface RolloutPlan {
  task: DemoTask;
  /** Number of the demo and of the rollout in it: they name the working directory. */
  demo: number;
  rollout: number;
  trialDir: string;
  upstream: string;
  runFlags: readonly string[];
}

export interface RolloutResult {
  plan: RolloutPlan;
  exitCode: number;
  reward: number;
  /** What stood in the file that the task asked for; null when it was not there. */
  answer: string | null;
  stderr: string;
}

/** Runs Pi on the task through `tito run`, verifies the work, writes reward.json. */
export async function runRollout(plan: RolloutPlan): Promise<RolloutResult> {
  const workDir = workDirectory(plan.demo, plan.rollout);
  const home = mkdtempSync(join(tmpdir(), "tito-home-"));
  mkdirSync(workDir, { recursive: true, mode: 0o700 });
  mkdirSync(join(plan.trialDir, "agent"), { recursive: true });
  try {
    const run = await tito(commandLine(plan, home), {
      cwd: workDir,
      env: environment(home),
      timeoutMs: ROLLOUT_TIMEOUT_MS,
    });
    writeFileSync(join(plan.trialDir, "agent/pi.txt"), run.stdout);
    writeFileSync(join(plan.trialDir, "agent/tito.log"), run.stderr);
    const answer = readAnswer(join(workDir, plan.task.expected.file));
    const reward = answer?.trim() === plan.task.expected.text ? 1 : 0;
    writeFileSync(join(plan.trialDir, "reward.json"), `${JSON.stringify({ reward })}\n`);
    return { plan, exitCode: run.exitCode, reward, answer, stderr: run.stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
    rmSync(workDir, { recursive: true, force: true });
  }
}

function commandLine(plan: RolloutPlan, home: string): string[] {
  const piArgs = [
    "--system-prompt",
    SYSTEM_PROMPT,
    "-nbt",
    "-e",
    join(root, "fixtures/demo/pi-tools.mjs"),
    "--no-session",
    "-ne",
    "-ns",
    "-np",
    "-nc",
    "--no-themes",
    "--thinking",
    "off",
  ];
  return [
    "run",
    ...["--upstream", plan.upstream, "--model", "policy", "--out", join(plan.trialDir, "agent/tito")],
    ...[
      "--trial-id",
      plan.trialDir.split("/").at(-1)!,
      "--group-id",
      plan.task.id,
      "--max-output-tokens",
      "96",
      "--max-context-tokens",
      "2048",
    ],
    ...plan.runFlags,
    ...["--harness", "pi", "--harness-home", home],
    ...piArgs.map((argument) => `--harness-arg=${argument}`),
    "--",
    plan.task.prompt,
  ];
}

/** What Pi needs and nothing of the user's: their keys and settings stay out. */
function environment(home: string): Record<string, string> {
  const path = [join(root, "node_modules/.bin"), dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(
    delimiter,
  );
  return { HOME: home, PATH: path, TERM: "dumb", LANG: "C.UTF-8", NO_COLOR: "1", CI: "1" };
}

function readAnswer(file: string): string | null {
  try {
    return readFileSync(file, "utf8").slice(0, ANSWER_BYTES_MAX);
  } catch {
    return null;
  }
}
