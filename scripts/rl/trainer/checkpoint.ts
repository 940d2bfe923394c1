/** Weights and optimizer state on disk. A checkpoint is a Hugging Face model directory with one more file. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSafetensors, writeSafetensors } from "../../../packages/reference-engine/src/lm/safetensors.js";
import { namedTensors } from "../../../packages/reference-engine/src/lm/training/parameters.js";
import type { Trainer } from "../../../packages/reference-engine/src/lm/training/trainer.js";
import type { GrpoTrainer } from "./grpo-trainer.js";

/** Adam's moments, as tensors of their own, so that every tool that reads the weights reads them too. */
const OPTIMIZER_FILE = "optimizer.safetensors";

/** Everything of a model directory that training does not change. */
const FIXED_FILES = [
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "chat_template.jinja",
];

/** Writes `dir`, which appears complete or not at all. `startDir` gives the files that training does not change. */
export function saveCheckpoint(grpo: GrpoTrainer, dir: string, startDir: string): void {
  const unfinished = `${dir}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  for (const name of FIXED_FILES) cpSync(join(startDir, name), join(unfinished, name));
  const { step, mean, square } = grpo.optimizer.state;
  writeFileSync(join(unfinished, "model.safetensors"), writeSafetensors(namedTensors(grpo.trainer.parameters)));
  const moments = new Map([
    ["step", { shape: [1], data: Float32Array.of(step) }],
    ["mean", { shape: [mean.length], data: mean }],
    ["square", { shape: [square.length], data: square }],
  ]);
  writeFileSync(join(unfinished, OPTIMIZER_FILE), writeSafetensors(moments));
  renameSync(unfinished, dir);
}

/** Reads what `saveCheckpoint` wrote. Throws when a file is missing or has another shape. */
export function loadCheckpoint(grpo: GrpoTrainer, dir: string): void {
  loadParameters(grpo.trainer, join(dir, "model.safetensors"));
  const file = join(dir, OPTIMIZER_FILE);
  const tensors = readSafetensors(readFileSync(file), file);
  const [step, mean, square] = ["step", "mean", "square"].map((name) => tensors.get(name)?.data);
  if (step === undefined || mean === undefined || square === undefined)
    throw new Error(`${file} is not an optimizer's state`);
  grpo.optimizer.restore({ step: step[0]!, mean, square });
}

/** Overwrites the trainer's parameters with those of a safetensors file of the same shapes. */
export function loadParameters(trainer: Trainer, file: string): void {
  const tensors = readSafetensors(readFileSync(file), file);
  for (const { name, value } of trainer.parameters.all) {
    const tensor = tensors.get(name);
    if (tensor === undefined || tensor.data.length !== value.data.length)
      throw new Error(`${file}: tensor ${name} is missing or has another size`);
    value.data.set(tensor.data);
  }
}
