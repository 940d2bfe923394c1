/** How faithful the recorded log probabilities are: the engine scores the materialized tokens again, and both are compared. */
import { readFileSync } from "node:fs";
import type { RolloutRun } from "@tito/materializer";

/** Below this variance a correlation says nothing. */
const VARIANCE_MIN = 1e-12;

export interface Fidelity {
  tokens: number;
  /** Pearson over exp(logprob); null when the variance is too small. */
  correlation: number | null;
  maxDifference: number;
  meanDifference: number;
}

export function readRuns(samplesFile: string): RolloutRun[] {
  return readFileSync(samplesFile, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as RolloutRun);
}

/** Log probability of every token of `tokens` behind its prefix, as the engine computes it now; index 0 is null. */
async function recompute(
  engineUrl: string,
  tokens: readonly number[],
  temperature: number,
): Promise<(number | null)[]> {
  const response = await fetch(`${engineUrl}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "policy",
      prompt: tokens,
      max_tokens: 1,
      temperature: 0,
      prompt_logprobs: 0,
      prompt_logprobs_temperature: temperature,
    }),
  });
  if (!response.ok)
    throw new Error(`the engine would not score ${tokens.length} tokens: ${response.status} ${await response.text()}`);
  const reply = (await response.json()) as {
    choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[];
  };
  return reply.choices[0]!.prompt_logprobs.map((entry, index) => entry?.[String(tokens[index])]?.logprob ?? null);
}

/** Compares every trained token of all samples. */
export async function measureFidelity(engineUrl: string, runs: readonly RolloutRun[]): Promise<Fidelity> {
  const recorded: number[] = [];
  const again: number[] = [];
  for (const sample of runs.flatMap((run) => run.samples)) {
    const scores = await recompute(engineUrl, sample.tokens, 1);
    sample.loss_mask.forEach((mask, index) => {
      if (mask === 0) return;
      const score = scores[index];
      if (score === null || score === undefined) throw new Error(`no score for token ${index} of a sample`);
      recorded.push(sample.logprobs[index]!);
      again.push(score);
    });
  }
  const differences = recorded.map((value, index) => Math.abs(value - again[index]!));
  return {
    tokens: recorded.length,
    correlation: pearson(recorded.map(Math.exp), again.map(Math.exp)),
    maxDifference: differences.reduce((max, value) => Math.max(max, value), 0),
    meanDifference:
      differences.length === 0 ? 0 : differences.reduce((sum, value) => sum + value, 0) / differences.length,
  };
}

function pearson(a: readonly number[], b: readonly number[]): number | null {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  if (a.length < 2) return null;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [covariance, varianceA, varianceB] = [0, 0, 0];
  a.forEach((value, index) => {
    const [deltaA, deltaB] = [value - meanA, b[index]! - meanB];
    covariance += deltaA * deltaB;
    varianceA += deltaA * deltaA;
    varianceB += deltaB * deltaB;
  });
  if (varianceA / a.length < VARIANCE_MIN || varianceB / a.length < VARIANCE_MIN) return null;
  return covariance / Math.sqrt(varianceA * varianceB);
}
