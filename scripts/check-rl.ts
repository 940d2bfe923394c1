/**
 * `npm run check:full rl-loop`: the RL loop at its full length. Three seeds, after which the intervals of tito's samples and the transcript must not overlap; then the
 * loop once more with PyTorch as its trainer. `TITO_TORCH_PYTHON` names an interpreter with torch, transformers and pyarrow; without one that part is skipped, and says so.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const DEMO = resolve(import.meta.dirname, "demo-rl.ts");
const MODULES = "import torch, transformers, pyarrow";

interface Arm {
  readonly arm: string;
  readonly tokens_trained: number;
  readonly tokens_never_sampled: number;
  readonly ratio_off_max: number;
  readonly held_out: readonly { readonly version: number; readonly low: number; readonly high: number }[];
}

interface Results {
  readonly arms: readonly Arm[];
  readonly runs: readonly {
    readonly arm: string;
    readonly seed: number;
    readonly iterations: readonly { readonly gradient_norm: number }[];
  }[];
}

const problems: string[] = [];
const must = (holds: boolean, claim: string): void => {
  console.log(`${holds ? "holds" : "FAILS"}: ${claim}`);
  if (!holds) problems.push(claim);
};

torchLoop(threeSeeds());
process.exitCode = problems.length === 0 ? 0 : 1;

/** Says how long tito's first gradient was with seed 1. */
function threeSeeds(): number {
  const { arms, runs } = demo(["--seed", "1,2,3"]);
  const [tito, transcript] = [find(arms, "tito"), find(arms, "transcript")];
  factsOfTito(tito);
  must(
    transcript.tokens_never_sampled > 0.2 * transcript.tokens_trained,
    "over 20 % of the transcript's tokens were never sampled there",
  );
  must(transcript.ratio_off_max === 0, "the transcript's own ratio is 1 all the same");
  must(
    last(tito).low > last(transcript).high,
    "after the last step the intervals of tito and transcript do not overlap",
  );
  return runs.find(({ arm, seed }) => arm === "tito" && seed === 1)!.iterations[0]!.gradient_norm;
}

function torchLoop(ownGradientNorm: number): void {
  const python = process.env.TITO_TORCH_PYTHON ?? "python3";
  if (spawnSync(python, ["-c", MODULES], { stdio: "ignore" }).status !== 0) {
    console.log(`SKIPPED the loop with PyTorch: ${python} cannot ${MODULES}; name one that can by TITO_TORCH_PYTHON`);
    return;
  }
  const { arms, runs } = demo(["--seed", "1", "--trainer", "torch", "--python", python]);
  const tito = find(arms, "tito");
  factsOfTito(tito);
  const off = Math.abs(runs[0]!.iterations[0]!.gradient_norm / ownGradientNorm - 1);
  must(off < 1e-4, "on the same rollouts PyTorch's gradient is as long as ours");
  must(last(tito).low > tito.held_out[0]!.high, "trained by PyTorch, the policy solves more than at the start");
}

function factsOfTito(tito: Arm): void {
  must(tito.tokens_trained > 0 && tito.tokens_never_sampled === 0, "every token of tito's samples was sampled there");
  must(tito.ratio_off_max < 1e-3, "recorded and recomputed log probabilities give ratio 1 within 1e-3");
}

function demo(flags: readonly string[]): Results {
  const out = mkdtempSync(join(tmpdir(), "tito-check-rl-"));
  const run = spawnSync(process.execPath, ["--import", "tsx", DEMO, "--out", out, ...flags], { stdio: "inherit" });
  if (run.status !== 0) throw new Error(`demo:rl ${flags.join(" ")} ended with exit code ${run.status}`);
  return JSON.parse(readFileSync(join(out, "results.json"), "utf8")) as Results;
}

const find = (arms: readonly Arm[], name: string): Arm => arms.find(({ arm }) => arm === name)!;
const last = (arm: Arm) => arm.held_out.at(-1)!;
