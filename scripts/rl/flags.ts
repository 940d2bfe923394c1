/** The flags of `npm run demo:rl`. */
import { parseArgs } from "node:util";
import { ARMS, type ArmName, HARNESSES, type LoopOptions, TRAINERS } from "./loop/options.js";

export const USAGE = `npm run demo:rl -- [flags]

The embedded model plays tasks through tito, its samples train it, the engine takes the new weights. Beside it the same loop trained on the
harness's transcript. No GPU, no Python. At the end: a table, curves.svg, table.md and results.json in --out.

  --out DIR            keeps everything there (default: a new directory under the system's temporary one)
  --resume             goes on with the run in --out; says so when it cannot
  --arms A,B           of ${ARMS.join(", ")} (default: all)
  --seed N[,N…]        several are run one after the other and pooled (default 1)
  --iterations N       optimizer steps (default 10)
  --tasks N            tasks a step (default 8)
  --rollouts N         rollouts a task (default 8)
  --held-out N         held-out tasks played with the first and the last weights (default 128; at most 200)
  --lr X, --clip X     Adam's constant rate and GRPO's clip (default 0.001 and 0.2)
  --stale N            the sampling weights lag N steps behind, as in an asynchronous trainer (default 0)
  --max-version-age N  masks tokens of weights older than this (default: --stale)
  --harness NAME       ${HARNESSES.join(", ")} (default both: they take turns)
  --trainer NAME       ours, or torch: examples/python/grpo_step.py (arm tito only)
  --python FILE        interpreter for --trainer torch (default python3)
  --json               standard output gets one JSON document, all else goes to standard error
  --help`;

export interface Flags {
  readonly out: string | null;
  readonly resume: boolean;
  readonly arms: readonly ArmName[];
  readonly seeds: readonly number[];
  readonly loop: Omit<LoopOptions, "seed">;
  readonly python: string | null;
  readonly json: boolean;
}

export type ParsedFlags =
  | { readonly kind: "help" }
  | { readonly kind: "usage"; readonly problem: string }
  | { readonly kind: "flags"; readonly flags: Flags };

const ROLLOUTS_MAX = 100;

class Usage extends Error {}

/** Reads the command line; a value that cannot be meant is a usage problem with the flag's name. */
export function parseFlags(args: readonly string[]): ParsedFlags {
  try {
    const values = readValues(args);
    if (values.help === true) return { kind: "help" };
    return { kind: "flags", flags: toFlags(values) };
  } catch (error) {
    return { kind: "usage", problem: (error as Error).message };
  }
}

/** The command that goes on with an interrupted run: its own flags, `--resume` and where it is. */
export function resumeCommand(args: readonly string[], out: string): string {
  const kept = args.filter(
    (arg, index) => arg !== "--resume" && arg !== "--out" && args[index - 1] !== "--out" && !arg.startsWith("--out="),
  );
  return ["npm run demo:rl --", ...kept, "--resume", "--out", out].join(" ");
}

function readValues(args: readonly string[]) {
  const text = { type: "string" } as const;
  const bit = { type: "boolean" } as const;
  return parseArgs({
    args: [...args],
    options: {
      ...{ out: text, resume: bit, arms: text, seed: text, iterations: text, tasks: text, rollouts: text },
      ...{ "held-out": text, lr: text, clip: text, stale: text, "max-version-age": text, harness: text },
      ...{ trainer: text, python: text, json: bit, help: bit },
    },
  }).values;
}

function toFlags(values: ReturnType<typeof readValues>): Flags {
  const stale = whole("stale", values.stale ?? "0", 0, 1000);
  const trainer = oneOf("trainer", values.trainer ?? "ours", TRAINERS);
  const arms = list("arms", values.arms ?? (trainer === "torch" ? "tito" : ARMS.join(","))).map((name) =>
    oneOf("arms", name, ARMS),
  );
  if (trainer === "torch" && arms.some((arm) => arm !== "tito"))
    throw new Usage("--trainer torch reads Parquet rows, which only the arm tito trains on");
  if (Number(values.tasks ?? 8) * Number(values.rollouts ?? 8) > ROLLOUTS_MAX)
    throw new Usage(`--tasks × --rollouts is more than ${ROLLOUTS_MAX}: the policy knows directories of two digits`);
  if (values.resume === true && values.out === undefined)
    throw new Usage("--resume needs --out: the run to go on with");
  return {
    out: values.out ?? null,
    resume: values.resume ?? false,
    arms,
    seeds: list("seed", values.seed ?? "1").map((seed) => whole("seed", seed, 0, 999)),
    loop: {
      iterations: whole("iterations", values.iterations ?? "10", 1, 999),
      tasks: whole("tasks", values.tasks ?? "8", 1, 50),
      rolloutsPerTask: whole("rollouts", values.rollouts ?? "8", 2, 50),
      heldOut: whole("held-out", values["held-out"] ?? "128", 0, 200),
      learningRate: positive("lr", values.lr ?? "0.001"),
      clip: positive("clip", values.clip ?? "0.2"),
      stale,
      maxVersionAge: whole("max-version-age", values["max-version-age"] ?? String(stale), 0, 1000),
      harness: oneOf("harness", values.harness ?? "both", HARNESSES),
      trainer,
    },
    python: values.python ?? null,
    json: values.json ?? false,
  };
}

function list(flag: string, text: string): string[] {
  const parts = text.split(",");
  if (new Set(parts).size !== parts.length) throw new Usage(`--${flag} names something twice: ${text}`);
  return parts;
}

function whole(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < min || value > max)
    throw new Usage(`--${flag} is ${JSON.stringify(text)}; give a whole number from ${min} to ${max}`);
  return value;
}

function positive(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0)
    throw new Usage(`--${flag} is ${JSON.stringify(text)}; give a number above 0`);
  return value;
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((name) => name === text);
  if (found === undefined) throw new Usage(`--${flag}: ${JSON.stringify(text)} is none of ${known.join(", ")}`);
  return found;
}
