import { expect, it } from "vitest";
import { LossCount, lossInWords } from "../../src/record/capture-loss.js";

const turn = (sampled: number, completion: number | null, defects: string[] = []) => ({
  defects,
  sampled_ids: { length: sampled },
  usage: { prompt_tokens: 3, completion_tokens: completion, cached_tokens: null },
});

it("a trajectory without losses has none; what was cut short, and what an engine never tells, is no loss (O.105)", () => {
  const count = new LossCount();
  for (const defect of ["client_gone", "stream_cut", "aborted", "usage_missing", "logprob_not_finite"])
    expect(count.turn(turn(2, 5, [defect]))).toEqual([]);
  count.uncaptured({ reason: "engine_refused", lost_tokens: false });
  expect(count.loss).toBeNull();
});

it("losses are counted in turns, calls and tokens, with their causes, in one line (O.105)", () => {
  const count = new LossCount();
  count.turn(turn(5, 5));
  expect(count.turn(turn(0, 300, ["completion_count_disagrees", "usage_missing"]))).toEqual([
    "completion_count_disagrees",
  ]);
  count.turn(turn(0, 90, ["completion_count_disagrees", "logprobs_missing"]));
  count.uncaptured({ reason: "sampled_ids_missing", lost_tokens: true });
  const loss = count.loss!;
  expect(loss).toEqual({
    turns: 3,
    damaged_turns: 2,
    calls_without_ids: 1,
    sampled_tokens: 5,
    missing_tokens: 390,
    causes: { completion_count_disagrees: 2, logprobs_missing: 1, sampled_ids_missing: 1 },
  });
  expect(lossInWords(loss)).toBe(
    "1 of 4 calls have no ids, 2 of 3 turns are damaged, 390 of 395 sampled tokens are missing " +
      "(completion_count_disagrees 2, logprobs_missing 1, sampled_ids_missing 1)",
  );
});
