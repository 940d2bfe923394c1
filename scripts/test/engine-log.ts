/** Compares samples with what the engine itself says it saw and sampled, token by token. */
import { readFileSync } from "node:fs";
import type { RolloutRun } from "@tito/materializer";
import { expect } from "vitest";

export interface EngineCall {
  path: string;
  prompt_ids: number[];
  sampled_ids: number[];
  logprobs: number[];
}

export function readEngineLog(file: string): EngineCall[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as EngineCall);
}

/**
 * Every trained token stands behind exactly the prefix that the engine saw, was sampled there, and has the log probability of that draw.
 * Answers how many tokens were compared.
 */
export function expectEachTrainedTokenIsTheEngines(runs: readonly RolloutRun[], calls: readonly EngineCall[]): number {
  const byPrompt = groupByPrompt(calls);
  let compared = 0;
  for (const sample of runs.flatMap((run) => run.samples)) {
    const covered = new Set<number>();
    for (const span of sample.spans.filter((one) => one.kind === "action")) {
      const sampled = sample.tokens.slice(span.start, span.end);
      const turnStart = sample.spans.find((one) => one.kind === "action" && one.turn === span.turn)!.start;
      const candidates = byPrompt.get(sample.tokens.slice(0, turnStart).join(",")) ?? [];
      const offset = span.start - turnStart;
      const call = candidates.find(
        (one) => one.sampled_ids.slice(offset, offset + sampled.length).join() === sampled.join(),
      );
      expect(call, `the engine never sampled turn ${span.turn} behind this prefix`).toBeDefined();
      for (let index = span.start; index < span.end; index++) {
        if (sample.loss_mask[index] === 1) expect(sample.logprobs[index]).toBe(call!.logprobs[index - turnStart]);
        covered.add(index);
      }
    }
    sample.loss_mask.forEach((mask, index) => {
      if (mask === 0) return;
      expect(covered.has(index), `token ${index} trains and lies in no action span`).toBe(true);
      compared += 1;
    });
  }
  return compared;
}

function groupByPrompt(calls: readonly EngineCall[]): Map<string, EngineCall[]> {
  const groups = new Map<string, EngineCall[]>();
  for (const call of calls) {
    const key = call.prompt_ids.join(",");
    groups.set(key, [...(groups.get(key) ?? []), call]);
  }
  return groups;
}
