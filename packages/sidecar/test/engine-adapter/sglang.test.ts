import { describe, expect, it } from "vitest";
import { sglang } from "../../src/engine-adapter/sglang.js";
import { sglangReader } from "../../src/engine-adapter/sglang-reply.js";
import { collected, ids, plain } from "./replies.js";

const tuples = (...values: [number, number][]) => values.map(([logprob, id]) => [logprob, id, null]);
const meta = (fields: object) => ({ id: "r1", prompt_tokens: 3, cached_tokens: 2, ...fields });
const FINISHED = { type: "stop", matched: 9 };
const SENT = ids(1, 2, 3);

describe("a call to SGLang with ids", () => {
  it("says everything: limit, sampling, stop ids, log probabilities of the output alone", () => {
    const { path, body } = sglang.ids({
      model: "policy",
      promptIds: SENT,
      maxTokens: 7,
      stream: true,
      sampling: new Map([
        ["top_k", "-1"],
        ["temperature", "1"],
      ]),
      stopTokenIds: [9],
      request: {
        sampling: { temperature: 0.5, seed: 4 },
        stop: ["x"],
        constraints: new Map([["stop_token_ids", "[8]"]]),
      },
    });
    expect(path).toBe("/generate");
    expect(JSON.parse(body)).toEqual({
      input_ids: [1, 2, 3],
      sampling_params: {
        max_new_tokens: 7,
        temperature: 0.5,
        top_k: -1,
        sampling_seed: 4,
        stop: ["x"],
        stop_token_ids: [9, 8],
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        no_stop_trim: false,
      },
      return_logprob: true,
      logprob_start_len: -1,
      top_logprobs_num: 1,
      return_text_in_logprobs: false,
      return_prompt_token_ids: true,
      stream: true,
    });
  });

  it("refuses what the route has no field for", () => {
    const request = { sampling: {}, stop: [], constraints: new Map([["logit_bias", "{}"]]) };
    const call = { model: "m", promptIds: SENT, maxTokens: 1, stream: false, sampling: new Map(), stopTokenIds: [] };
    expect(() => sglang.ids({ ...call, request })).toThrow("logit_bias");
  });
});

describe("a reply of SGLang's generate route", () => {
  const whole = {
    text: "?",
    output_ids: [5, 9],
    meta_info: meta({
      finish_reason: FINISHED,
      completion_tokens: 2,
      weight_version: "step-3",
      output_token_logprobs: tuples([-0.25, 5], [-0.5, 9]),
    }),
  };
  const expected = {
    prompt: [1, 2, 3],
    ids: [5, 9],
    logprobs: [-0.25, -0.5],
    finish: "stop",
    stop: 9,
    defects: [],
    versions: [{ version: "step-3", start: 0, end: 2 }],
  };

  it("is whole evidence, with the weights' version", () => {
    expect(plain(collected(sglangReader(SENT), [whole], SENT))).toEqual(expected);
  });

  it("is the same from a stream that repeats itself and from one that does not", () => {
    const piece = (list: [number, number][], count: number, finish: object | null) => ({
      output_ids: list.map(([, id]) => id),
      meta_info: meta({
        finish_reason: finish,
        completion_tokens: count,
        weight_version: "step-3",
        output_token_logprobs: tuples(...list),
      }),
    });
    const cumulative = [
      piece([[-0.25, 5]], 1, null),
      piece(
        [
          [-0.25, 5],
          [-0.5, 9],
        ],
        2,
        null,
      ),
      piece(
        [
          [-0.25, 5],
          [-0.5, 9],
        ],
        2,
        FINISHED,
      ),
    ];
    const incremental = [piece([[-0.25, 5]], 1, null), piece([[-0.5, 9]], 2, null), piece([], 2, FINISHED)];
    expect(plain(collected(sglangReader(SENT), cumulative, SENT))).toEqual(expected);
    expect(plain(collected(sglangReader(SENT), incremental, SENT))).toEqual(expected);
  });

  it("is invalid when an event contradicts the ids of an earlier one", () => {
    const first = { meta_info: meta({ completion_tokens: 1, output_token_logprobs: tuples([-0.25, 5]) }) };
    const second = {
      meta_info: meta({
        completion_tokens: 2,
        finish_reason: FINISHED,
        output_token_logprobs: tuples([-0.25, 6], [-0.5, 9]),
      }),
    };
    expect(collected(sglangReader(SENT), [first, second], SENT).defects).toContain("ids_invalid");
  });

  it("takes version spans over the version of the last event", () => {
    const spans = [
      { version: "a", start: 0, end: 1 },
      { version: "b", start: 1, end: 2 },
    ];
    const reply = { ...whole, meta_info: { ...whole.meta_info, weight_versions: spans } };
    expect(collected(sglangReader(SENT), [reply], SENT).versions).toEqual(spans);
  });

  it("is aborted with its partial ids, which the tuples hold whole where output_ids does not", () => {
    const reply = {
      output_ids: [6],
      meta_info: meta({
        finish_reason: { type: "abort", message: "weights are being updated" },
        completion_tokens: 2,
        output_token_logprobs: tuples([-0.25, 5], [-0.5, 6]),
      }),
    };
    const sampled = collected(sglangReader(SENT), [reply], SENT);
    expect(plain(sampled)).toMatchObject({ ids: [5, 6], finish: "abort", defects: ["aborted"] });
  });

  it.each([
    ["a wrapped error", { error: { message: "bad input" } }, "bad input", null],
    ["a detail", { detail: "overloaded" }, "overloaded", null],
    [
      "an abort with a client error",
      {
        meta_info: meta({
          finish_reason: { type: "abort", message: "too long", status_code: 400 },
          completion_tokens: 0,
        }),
      },
      "too long",
      400,
    ],
  ])("is an error: %s", (_name, json, message, status) => {
    expect(sglangReader(SENT)(json).error).toMatchObject({ message, status });
  });

  it("marks a prompt that the server cut, and a count that is not its ids'", () => {
    const cut = { ...whole, meta_info: { ...whole.meta_info, prompt_tokens: 2 } };
    expect(collected(sglangReader(SENT), [cut], SENT).defects).toEqual(["prompt_count_disagrees"]);
    const short = { ...whole, meta_info: { ...whole.meta_info, completion_tokens: 3 } };
    expect(collected(sglangReader(SENT), [short], SENT).defects).toEqual(["completion_count_disagrees"]);
  });

  it("marks values that are missing or no numbers", () => {
    const reply = (output_token_logprobs: unknown) => ({
      output_ids: [5, 9],
      meta_info: meta({ finish_reason: FINISHED, completion_tokens: 2, output_token_logprobs }),
    });
    expect(collected(sglangReader(SENT), [reply(undefined)], SENT).defects).toEqual(["logprobs_missing"]);
    const gaps = collected(
      sglangReader(SENT),
      [
        reply([
          ["NaN", 5, null],
          [-0.5, 9, null],
        ]),
      ],
      SENT,
    ).gaps;
    expect(gaps).toEqual([{ index: 0, was: "NaN" }]);
  });
});

describe("a reply of SGLang's chat route", () => {
  const { reader, body } = sglang.chat!({
    chatBody: '{"messages":[]}',
    model: "policy",
    stream: false,
    sampling: new Map(),
    maxOutputTokens: null,
  });
  const usage = { prompt_tokens: 2, completion_tokens: 2 };
  const choice = { index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop", matched_stop: 9 };
  const content = [{ logprob: -0.25 }, { logprob: -0.5 }];

  it("is asked for in the words of every generation, unstreamed", () => {
    expect(JSON.parse(body)).toMatchObject({ return_token_ids: true, return_meta_info: true, return_output_ids: true });
    const call = { chatBody: "{}", model: "m", sampling: new Map<string, string>(), maxOutputTokens: null };
    expect(JSON.parse(sglang.chat!({ ...call, stream: true }).body)).not.toHaveProperty("return_meta_info");
  });

  it.each([
    [
      "meta_info",
      {
        choices: [
          { ...choice, prompt_token_ids: [1, 2], meta_info: { output_token_logprobs: tuples([-0.25, 5], [-0.5, 9]) } },
        ],
      },
    ],
    ["token_ids", { choices: [{ ...choice, prompt_token_ids: [1, 2], token_ids: [5, 9], logprobs: { content } }] }],
    [
      "sglext",
      { choices: [{ ...choice, logprobs: { content } }], sglext: { input_ids: [1, 2], output_ids: [[5, 9]] } },
    ],
  ])("tells its ids in %s", (_name, json) => {
    const sampled = collected(reader(), [{ id: "c1", ...json, usage }], null);
    expect(plain(sampled)).toMatchObject({
      prompt: [1, 2],
      ids: [5, 9],
      logprobs: [-0.25, -0.5],
      stop: 9,
      defects: [],
    });
  });

  it("may tell them in the last event of a stream", () => {
    const pieces = [
      { choices: [{ index: 0, delta: { content: "He" }, logprobs: { content: [content[0]] }, finish_reason: null }] },
      {
        choices: [{ index: 0, delta: { content: "llo" }, logprobs: { content: [content[1]] }, finish_reason: "stop" }],
      },
      { choices: [], usage, sglext: { input_ids: [1, 2], output_ids: [[5, 9]] } },
    ];
    expect(plain(collected(reader(), pieces, null))).toMatchObject({ prompt: [1, 2], ids: [5, 9], defects: [] });
  });
});

describe("SGLang's log probabilities", () => {
  it("are not the sampled distribution's where something is filtered", () => {
    const mode = sglang.logprobModeOf!;
    expect(mode("processed", { temperature: 0.5, top_p: 1, top_k: -1, min_p: 0 })).toBe("processed");
    // O.90: filters that nobody named are the server's own, from the model's generation_config.json.
    expect(mode("processed", { temperature: 0.5 })).toBe("unknown");
    expect(mode("processed", {})).toBe("unknown");
    expect(mode("processed", { top_p: 1, top_k: -1 })).toBe("unknown");
    expect(mode("processed", { top_p: 0.9 })).toBe("raw");
    expect(mode("processed", { top_k: 20 })).toBe("raw");
  });
});
