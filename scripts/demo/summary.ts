/** The demo's last words: what was captured, what trains, and why every other token does not. */
import type { RolloutRun } from "@tito/materializer";

/** Two lines. Masked tokens are counted over all samples, by the reason of their span. */
export function summarize(runs: readonly RolloutRun[]): string {
  const samples = runs.flatMap((run) => run.samples);
  const masked = new Map<string, number>();
  for (const sample of samples) {
    for (const span of sample.spans.filter((one) => one.reason !== "trained")) {
      masked.set(span.reason, (masked.get(span.reason) ?? 0) + span.end - span.start);
    }
  }
  const rewards = runs.map((run) => run.reward ?? 0);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const segments = sum(samples.map((sample) => sample.segments.length));
  const captured = sum(runs.map((run) => run.coverage.captured_tokens));
  const trained = sum(runs.map((run) => run.coverage.trained_tokens));
  const reasons = [...masked].map(([reason, tokens]) => `${reason} ${tokens}`).join(", ");
  return [
    `${runs.length} rollouts, ${sum(rewards)} solved · ${segments} segments · ${captured} sampled tokens captured, ${trained} trained`,
    `masked tokens by reason: ${reasons}`,
  ].join("\n");
}
