/** One arm from the start policy to the last iteration: play, materialize, make samples, train, hand the weights to the engine. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadModel } from "../../../packages/reference-engine/src/lm/model.js";
import { parseTokenizer } from "../../../packages/reference-engine/src/lm/tokenizer.js";
import { conversationRenderer } from "../../../packages/reference-engine/src/lm/training/episode.js";
import { habitOf } from "../habits/habit.js";
import { measureHabits } from "../habits/measure.js";
import { EngineLog } from "../samples/engine-log.js";
import type { RolloutRecord } from "../samples/rollout-record.js";
import { loadCheckpoint, loadParameters, saveCheckpoint } from "../trainer/checkpoint.js";
import { GRPO_DEFAULTS, GrpoTrainer } from "../trainer/grpo-trainer.js";
import type { HeldOut, IterationRow } from "./iteration-row.js";
import type { ArmName, LoopOptions } from "./options.js";
import { playBatch } from "./play-batch.js";
import { CannotResume, RunState } from "./run-state.js";
import { startServices } from "./services.js";
import { type ArmTrainer, openOurTrainer } from "./train-batch.js";
import { openTorchTrainer } from "./train-torch.js";

export interface ArmOptions {
  readonly arm: ArmName;
  readonly options: LoopOptions;
  readonly dir: string;
  /** The start policy's model directory. */
  readonly startDir: string;
  readonly resume: boolean;
  /** For `--trainer torch`. */
  readonly python: string | null;
}

export interface ArmEvents {
  onRow(row: IterationRow): void;
  onHeldOut(version: number, heldOut: HeldOut): void;
}

/** Runs the arm; what was done before is reported too. Rejects when the signal fires, after its processes have ended. */
export async function runArm(arm: ArmOptions, events: ArmEvents, signal: AbortSignal): Promise<void> {
  const { options } = arm;
  const state = RunState.open(arm.dir, options, arm.resume);
  const attempt = state.nextAttempt();
  const done = state.rows();
  for (const row of done) events.onRow(row);
  const grpo = openCheckpoint(state, arm, done.length);
  await reportHeldOut(state, 0, arm, events);
  const services = await startServices({ dir: arm.dir, weights: state.weightsDir(0), seed: options.seed });
  try {
    const trainer = openTrainer(arm, grpo, services.capturedDir);
    const log = new EngineLog(services.engineLog);
    log.take();
    for (let iteration = done.length; iteration < options.iterations; iteration++) {
      signal.throwIfAborted();
      const startedMs = performance.now();
      const sampling = Math.max(0, iteration - options.stale);
      await services.useWeights(state.weightsDir(sampling), `step-${sampling}`);
      const records = await playBatch({ options, iteration, attempt, services, signal });
      const outDir = join(arm.dir, "batches", String(iteration));
      mkdirSync(outDir, { recursive: true });
      const trained = await trainer.train({
        records,
        answers: log.take(),
        iteration,
        outDir,
        from: state.weightsDir(iteration),
        to: state.weightsDir(iteration + 1),
      });
      const row = { iteration, ...outcome(records), ...trained, seconds: (performance.now() - startedMs) / 1000 };
      state.addRow(row);
      events.onRow(row);
    }
  } finally {
    await services.close();
  }
  await reportHeldOut(state, options.iterations, arm, events);
}

/** A trainer that holds the newest checkpoint; the first one is made of the start policy. */
function openCheckpoint(state: RunState, { options, startDir }: ArmOptions, version: number): GrpoTrainer {
  const { seed, learningRate, clip } = options;
  const grpo = new GrpoTrainer({ ...GRPO_DEFAULTS, seed, learningRate, clip });
  if (version === 0) {
    loadParameters(grpo.trainer, join(startDir, "model.safetensors"));
    saveCheckpoint(grpo, state.weightsDir(0), startDir);
  } else if (options.trainer === "ours") {
    try {
      loadCheckpoint(grpo, state.weightsDir(version));
    } catch (cause) {
      throw new CannotResume(`${state.weightsDir(version)} is no whole checkpoint; start another run in a new --out`, {
        cause,
      });
    }
  }
  return grpo;
}

function openTrainer(arm: ArmOptions, grpo: GrpoTrainer, capturedDir: string): ArmTrainer {
  const { options, startDir } = arm;
  if (options.trainer === "torch") return openTorchTrainer({ options, capturedDir, python: arm.python ?? "python3" });
  const read = (name: string) => readFileSync(join(startDir, name), "utf8");
  const reader = {
    tokenizer: parseTokenizer(read("tokenizer.json"), "tokenizer.json"),
    render: conversationRenderer(read("chat_template.jinja")),
  };
  return openOurTrainer({ arm: arm.arm, options, capturedDir, grpo, startDir, reader });
}

function outcome(records: readonly RolloutRecord[]): Pick<IterationRow, "rollouts" | "solved" | "habits"> {
  const habits = { calc: 0, think: 0, guess: 0 };
  for (const { transcript } of records) {
    const first = transcript.find(({ role }) => role === "assistant");
    const toolNames = (first?.toolCalls ?? []).map(({ name }) => name);
    habits[habitOf({ reasoning: first?.reasoning ?? null, toolNames })] += 1;
  }
  const solved = records.reduce((sum, { reward }) => sum + reward, 0);
  return { rollouts: records.length, solved, habits };
}

/** Plays the held-out tasks with one checkpoint, unless that was done before. */
async function reportHeldOut(state: RunState, version: number, arm: ArmOptions, events: ArmEvents): Promise<void> {
  const { heldOut: rollouts, seed } = arm.options;
  if (rollouts === 0) return;
  const before = state.heldOut(version);
  const heldOut = before ?? (await playHeldOut(state.weightsDir(version), arm.startDir, { rollouts, seed }));
  if (before === null) state.addHeldOut(version, heldOut);
  events.onHeldOut(version, heldOut);
}

async function playHeldOut(
  weightsDir: string,
  startDir: string,
  { rollouts, seed }: { rollouts: number; seed: number },
): Promise<HeldOut> {
  if (!existsSync(join(weightsDir, "model.safetensors"))) throw new CannotResume(`${weightsDir} is gone`);
  const model = await loadModel(weightsDir);
  const render = conversationRenderer(readFileSync(join(startDir, "chat_template.jinja"), "utf8"));
  const { calc, think, guess } = measureHabits(model, render, { rollouts, seed });
  return {
    rollouts,
    solved: calc.solved + think.solved + guess.solved,
    habits: { calc: calc.rollouts, think: think.rollouts, guess: guess.rollouts },
  };
}
