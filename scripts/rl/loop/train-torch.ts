/** The same step in PyTorch: examples/python/grpo_step.py reads the Parquet, and its saved directory goes back into the engine. */
import { join, resolve } from "node:path";
import { execa } from "execa";
import { samplesFromTito } from "../samples/from-tito.js";
import { materializeBatch } from "./materialize-batch.js";
import type { LoopOptions } from "./options.js";
import { type ArmTrainer, captured, compareWithEngine } from "./train-batch.js";

const SCRIPT = resolve(import.meta.dirname, "../../../examples/python/grpo_step.py");

/** The line that grpo_step.py prints. */
interface TorchReport {
  readonly loss: number | null;
  readonly tokens: number;
  readonly mean_logprob: number | null;
  readonly ratio_off_max: number;
  readonly clipped_tokens: number;
  readonly gradient_norm: number;
  /** log π of each trained token before the step, row by row. */
  readonly logprobs: readonly (readonly number[])[];
}

export function openTorchTrainer(of: { options: LoopOptions; capturedDir: string; python: string }): ArmTrainer {
  return {
    async train({ records, answers, iteration, outDir, from, to }) {
      const { learningRate, clip, maxVersionAge } = of.options;
      const parquet = join(outDir, "rows.parquet");
      const batch = { records, capturedDir: of.capturedDir, outDir, currentVersion: iteration, maxVersionAge };
      const runs = await materializeBatch(batch, parquet);
      const flags = [
        "--rows",
        parquet,
        "--model",
        from,
        "--out",
        to,
        "--lr",
        String(learningRate),
        "--clip",
        String(clip),
      ];
      const { stdout } = await execa(of.python, [SCRIPT, ...flags], { stdin: "ignore", stderr: "inherit" });
      const report = JSON.parse(stdout) as TorchReport;
      const samples = samplesFromTito(runs);
      const compared = compareWithEngine(samples, answers);
      samples.forEach(({ mask }, sample) => {
        const logprobs = report.logprobs[sample]!;
        let at = 0;
        mask.forEach((bit, index) => {
          if (bit === 1) compared.seen(sample, index, logprobs[at++]!);
        });
      });
      return {
        ...captured(runs),
        tokensTrained: report.tokens,
        ...compared.result(),
        ratioOffMax: report.ratio_off_max,
        clippedTokens: report.clipped_tokens,
        meanLogprob: report.mean_logprob,
        loss: report.loss,
        gradientNorm: report.gradient_norm,
      };
    },
  };
}
