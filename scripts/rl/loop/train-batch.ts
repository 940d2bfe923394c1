/** From one iteration's rollouts to the next weights, by the trainer of this repository. */
import type { RolloutRun } from "@tito/materializer";
import { groupAdvantages } from "../samples/advantages.js";
import { type SampledAnswer, sampledLogprobs } from "../samples/engine-log.js";
import { samplesFromTito } from "../samples/from-tito.js";
import { samplesFromTranscripts, type TranscriptReader } from "../samples/from-transcript.js";
import type { RolloutRecord } from "../samples/rollout-record.js";
import { saveCheckpoint } from "../trainer/checkpoint.js";
import type { GrpoTrainer } from "../trainer/grpo-trainer.js";
import type { TrainingSample } from "../trainer/training-sample.js";
import type { IterationRow } from "./iteration-row.js";
import { materializeBatch } from "./materialize-batch.js";
import type { ArmName, LoopOptions } from "./options.js";

/** What training adds to an iteration's row. */
type Trained = Omit<IterationRow, "iteration" | "rollouts" | "solved" | "habits" | "seconds">;

interface BatchToTrain {
  readonly records: readonly RolloutRecord[];
  /** What the engine logged meanwhile; only compared, never trained on. */
  readonly answers: readonly SampledAnswer[];
  readonly iteration: number;
  readonly outDir: string;
  /** Checkpoint before and after the step. */
  readonly from: string;
  readonly to: string;
}

export interface ArmTrainer {
  train(batch: BatchToTrain): Promise<Trained>;
}

export function openOurTrainer(of: {
  arm: ArmName;
  options: LoopOptions;
  capturedDir: string;
  grpo: GrpoTrainer;
  startDir: string;
  reader: TranscriptReader;
}): ArmTrainer {
  return {
    async train({ records, answers, iteration, outDir, to }) {
      const { capturedDir, options } = of;
      const { maxVersionAge } = options;
      // Every arm is materialized, so that all rows say what was captured; only the tito arm trains on it.
      const runs = await materializeBatch({ records, capturedDir, outDir, currentVersion: iteration, maxVersionAge });
      const samples = samplesOf(of.arm, runs, records, of.reader);
      const compared = compareWithEngine(samples, answers);
      const report = of.grpo.step(samples, compared.seen);
      saveCheckpoint(of.grpo, to, of.startDir);
      return {
        ...captured(runs),
        tokensTrained: report.tokens,
        ...compared.result(),
        ratioOffMax: report.ratioOffMax,
        clippedTokens: report.clippedTokens,
        meanLogprob: report.meanLogprob,
        loss: report.loss,
        gradientNorm: report.gradientNorm,
      };
    },
  };
}

function samplesOf(
  arm: ArmName,
  runs: readonly RolloutRun[],
  records: readonly RolloutRecord[],
  reader: TranscriptReader,
): TrainingSample[] {
  if (arm === "tito") return samplesFromTito(runs);
  const advantages = groupAdvantages(records);
  const rollouts = records.map(({ transcript }, index) => ({ transcript, advantage: advantages[index]! }));
  return samplesFromTranscripts(rollouts, arm === "transcript" ? "plain" : "careful", reader);
}

/** What the rows say about capture. */
export function captured(
  runs: readonly RolloutRun[],
): Pick<IterationRow, "sampledBy" | "tokensSampled" | "tokensStale"> {
  const sum = (of: (run: RolloutRun) => number) => runs.reduce((total, run) => total + of(run), 0);
  return {
    sampledBy: [...new Set(runs.flatMap((run) => run.weight_versions))].sort(),
    tokensSampled: sum((run) => run.coverage.captured_tokens),
    tokensStale: sum((run) => run.coverage.masked.stale_version ?? 0),
  };
}

type Compared = Pick<IterationRow, "tokensNeverSampled" | "recordedOffMax" | "recordedOffMean">;

/** Holds each trained token against the engine's log: was it sampled behind this prefix, and does the trainer compute the log probability that it was sampled with? */
export function compareWithEngine(
  samples: readonly TrainingSample[],
  answers: readonly SampledAnswer[],
): { seen: (sample: number, index: number, logprob: number) => void; result: () => Compared } {
  const sampled = samples.map((sample) => sampledLogprobs(sample, answers));
  let [max, sum, count, never] = [0, 0, 0, 0];
  return {
    seen(sample, index, logprob) {
      const recorded = sampled[sample]!.get(index) ?? null;
      if (recorded === null) {
        never += 1;
        return;
      }
      const off = Math.abs(logprob - recorded);
      max = Math.max(max, off);
      sum += off;
      count += 1;
    },
    result: () => ({
      tokensNeverSampled: never,
      recordedOffMax: count === 0 ? null : max,
      recordedOffMean: count === 0 ? null : sum / count,
    }),
  };
}
