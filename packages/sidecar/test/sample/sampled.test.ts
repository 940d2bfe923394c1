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
    ["the finish is no text (O.93)", {}, { finish_reason: 3 }, "finish_missing"],
    ...["cancelled", "", "content_filter", "repetition", "STOP", "unknown"].map(
      (finish): [string, Body, Body, string] => [
        `the finish is ${JSON.stringify(finish)}, which no rule knows (O.93)`,
        {},
        { finish_reason: finish },
        "finish_unknown",
      ],
    ),
    ...[1e-5, 0.5, 30, Number.POSITIVE_INFINITY].map((value): [string, Body, Body, string] => [
      `a log probability is ${value} (O.92)`,
      {},
      { logprobs: { content: [logprob(-0.5), logprob(value)] } },
      "logprob_positive",
    ]),
  ])("but not when %s", (_what, top, choice, defect) => {
    expect(collect(top, choice).defects).toContain(defect);
  });

  it.each(["stop", "length", "tool_calls", "function_call"])("when the finish is %s (O.93)", (finish_reason) => {
    expect(collect({}, { finish_reason }).defects).toEqual([]);
  });

  it("when a nearly certain token's value is above 0 by the noise of float32 (O.92)", () => {
    const sampled = collect({}, { logprobs: { content: [logprob(1.1920928955078125e-7), logprob(0)] } });
    expect(sampled.defects).toEqual([]);
    expect(sampled.logprobs![0]).toBe(1.1920928955078125e-7);
  });

  it("and a reply that lost its counts is damage where the engine is known to count (O.91)", () => {
    const lost = (counts: boolean, finish: string | null = "stop") => {
      const collector = new Collector(null, counts);
      const choices = [{ token_ids: [7, 9], logprobs: { content: [logprob(-1), logprob(-1)] }, finish_reason: finish }];
      collector.add(readEngineChunk({ prompt_token_ids: [1], choices }));
      if (finish === null) collector.mark("stream_cut");
      return collector.result().defects;
    };
    expect(lost(true)).toEqual(["usage_lost"]);
    expect(lost(false)).toEqual(["usage_missing"]);
    // A reply that was cut off never came to its counts.
    expect(lost(true, null)).toEqual(["stream_cut"]);
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
    // The label is that of the moment when the piece was sent: its ids may still be the earlier weights'.
    expect(collector.result().versions).toEqual([
      { version: "a", start: 0, end: 1 },
      { version: "a..b", start: 1, end: 3 },
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
