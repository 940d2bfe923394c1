import { describe, expect, it } from "vitest";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { Collector, type Sampled } from "../../src/sample/sampled.js";

type Body = Record<string, unknown>;
const logprob = (value: unknown) => ({ token: "x", logprob: value });

/** A whole reply in vLLM's shape, with changes. */
function collect(top: Body = {}, choice: Body = {}): Sampled {
  const collector = new Collector();
  collector.add(
    readEngineChunk({
      id: "chatcmpl-1",
      model: "policy",
      created: 1,
      prompt_token_ids: [1, 2, 3],
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "hi" },
          token_ids: [7, 8],
          logprobs: { content: [logprob(-0.5), logprob(-0.25)] },
          finish_reason: "stop",
          stop_reason: null,
          ...choice,
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 2 },
      ...top,
    }),
  );
  return collector.result();
}

describe("a reply is whole evidence", () => {
  it("when ids, log probabilities and usage agree", () => {
    const sampled = collect();
    expect(sampled.defects).toEqual([]);
    expect([...sampled.promptIds!]).toEqual([1, 2, 3]);
    expect([...sampled.ids]).toEqual([7, 8]);
    expect(sampled.logprobs).toEqual(Float32Array.from([-0.5, -0.25]));
  });

  it.each<[string, Body, Body, string]>([
    ["prompt ids are missing", { prompt_token_ids: null }, {}, "prompt_ids_missing"],
    ["sampled ids are missing", {}, { token_ids: null }, "sampled_ids_missing"],
    ["an id is no int32", {}, { token_ids: [7, 2 ** 31] }, "ids_invalid"],
    ["an id is negative", {}, { token_ids: [7, -1] }, "ids_invalid"],
    [
      "there are fewer log probabilities than ids",
      {},
      { logprobs: { content: [logprob(-1)] } },
      "ids_logprobs_disagree",
    ],
    ["there are no log probabilities", {}, { logprobs: null }, "logprobs_missing"],
    [
      "usage counts other sampled ids",
      { usage: { prompt_tokens: 3, completion_tokens: 3 } },
      {},
      "completion_count_disagrees",
    ],
    [
      "usage counts another prompt (a silent truncation)",
      { usage: { prompt_tokens: 9, completion_tokens: 2 } },
      {},
      "prompt_count_disagrees",
    ],
    ["usage is missing", { usage: null }, {}, "usage_missing"],
    ["the engine aborted", {}, { finish_reason: "abort" }, "aborted"],
    ["there is no finish", {}, { finish_reason: null }, "finish_missing"],
  ])("but not when %s", (_what, top, choice, defect) => {
    expect(collect(top, choice).defects).toContain(defect);
  });

  it("and never pads or cuts log probabilities to fit", () => {
    expect(collect({}, { logprobs: { content: [logprob(-1)] } }).logprobs).toBeNull();
    expect(collect({}, { logprobs: { content: [logprob(-1), logprob(-1), logprob(-1)] } }).logprobs).toBeNull();
  });

  it.each([
    [null, "null"],
    ["NaN", "NaN"],
    [-9999, "-9999"],
    [undefined, "missing"],
  ])("and a log probability of %j is a gap that says what stood there", (value, was) => {
    const sampled = collect({}, { logprobs: { content: [logprob(-0.5), logprob(value)] } });
    expect(sampled.gaps).toEqual([{ index: 1, was }]);
    expect([...sampled.logprobs!]).toEqual([-0.5, Number.NaN]);
    expect(sampled.defects).toEqual(["logprob_not_finite"]);
  });

  it("and keeps float64 where float32 would lose something", () => {
    const exact = collect({}, { logprobs: { content: [logprob(-0.1234567880654335), logprob(-0.5)] } });
    expect(exact.logprobs).toBeInstanceOf(Float64Array);
    expect(exact.logprobs?.[0]).toBe(-0.1234567880654335);
  });
});

describe("a streamed reply", () => {
  const chunk = (choice: Body, top: Body = {}) =>
    readEngineChunk({ id: "c", choices: [{ index: 0, ...choice }], ...top });

  it("adds deltas of several tokens up, ids on empty deltas included", () => {
    const collector = new Collector();
    collector.add(chunk({ delta: { role: "assistant", content: "" }, logprobs: null }, { prompt_token_ids: [1] }));
    collector.add(
      chunk({ delta: { content: "a" }, token_ids: [5, 6], logprobs: { content: [logprob(-1), logprob(-2)] } }),
    );
    collector.add(chunk({ delta: {}, token_ids: [7], logprobs: { content: [logprob(-3)] } }));
    collector.add(chunk({ delta: {}, finish_reason: "stop", token_ids: [2], logprobs: { content: [logprob(0)] } }));
    collector.add(readEngineChunk({ id: "c", choices: [], usage: { prompt_tokens: 1, completion_tokens: 4 } }));
    const sampled = collector.result();
    expect(sampled.defects).toEqual([]);
    expect([...sampled.ids]).toEqual([5, 6, 7, 2]);
  });

  it("keeps what was sampled when it is cut", () => {
    const collector = new Collector();
    collector.add(
      chunk({ delta: {}, token_ids: [5], logprobs: { content: [logprob(-1)] } }, { prompt_token_ids: [1] }),
    );
    collector.mark("stream_cut");
    expect(collector.result()).toMatchObject({ ids: Int32Array.from([5]), defects: ["stream_cut"], finish: null });
  });

  it("tells which version sampled which ids", () => {
    const collector = new Collector();
    collector.add(
      chunk(
        { delta: {}, token_ids: [5], logprobs: { content: [logprob(-1)] }, weight_version: "a" },
        { prompt_token_ids: [1] },
      ),
    );
    collector.add(
      chunk({
        delta: {},
        token_ids: [6, 7],
        logprobs: { content: [logprob(-1), logprob(-1)] },
        weight_version: "b",
        finish_reason: "stop",
      }),
    );
    expect(collector.result().versions).toEqual([
      { version: "a", start: 0, end: 1 },
      { version: "b", start: 1, end: 3 },
    ]);
  });
});

describe("an engine's chunk", () => {
  it.each([
    null,
    1,
    "x",
    [],
    {},
    { choices: {} },
    { choices: [null] },
    { choices: [{ delta: [], token_ids: {}, logprobs: 3 }] },
  ])("of any shape is read without failing: %j", (json) => {
    expect(readEngineChunk(json).sampled).toBeNull();
  });

  it("knows both names of reasoning", () => {
    expect(readEngineChunk({ choices: [{ delta: { reasoning: "a" } }] })).toMatchObject({
      reasoning: "a",
      reasoningKey: "reasoning",
    });
    expect(readEngineChunk({ choices: [{ delta: { reasoning_content: "b" } }] })).toMatchObject({
      reasoning: "b",
      reasoningKey: "reasoning_content",
    });
  });
});
