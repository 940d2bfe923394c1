import { describe, expect, it } from "vitest";
import type { IdsCall } from "../../src/engine-adapter/adapter.js";
import { llamacpp as adapter, readLlamacppReply } from "../../src/engine-adapter/llamacpp.js";
import { placeById } from "../../src/engine-adapter/place-by-id.js";
import { classify } from "../../src/sample/engine-failure.js";
import { collected, ids, plain } from "./replies.js";

const llamacpp = adapter(true);
const call = (fields: Partial<IdsCall> = {}): IdsCall => ({
  model: "policy",
  promptIds: ids(1, 2),
  maxTokens: 8,
  stream: false,
  sampling: new Map([
    ["temperature", "1"],
    ["top_k", "-1"],
    ["repetition_penalty", "1"],
  ]),
  stopTokenIds: [9],
  request: { sampling: {}, stop: [] },
  ...fields,
});

const entry = (id: number, prob: number) => ({ id, token: "?", bytes: [], prob, top_probs: [{ id, prob }] });
const reply = (tokens: number[], entries: object[], fields: object = {}) => ({
  index: 0,
  content: "?",
  tokens,
  stop: true,
  model: "policy",
  tokens_predicted: tokens.length,
  tokens_evaluated: 2,
  truncated: false,
  stop_type: "eos",
  stopping_word: "",
  timings: { cache_n: 1 },
  completion_probabilities: entries,
  ...fields,
});
const read = (json: unknown) => collected((piece) => readLlamacppReply(piece, ids(1, 2)), [json], ids(1, 2));

describe("a call to llama.cpp", () => {
  it("names the whole sampler chain, because the server's own is not neutral", () => {
    const body = JSON.parse(llamacpp.ids(call()).body) as Record<string, unknown>;
    expect(body).toMatchObject({
      prompt: [1, 2],
      n_predict: 8,
      n_probs: 1,
      return_tokens: true,
      post_sampling_probs: true,
      n_cache_reuse: 0,
      temperature: 1,
      top_k: 0,
      repeat_penalty: 1,
      samplers: ["penalties", "top_k", "top_p", "min_p", "temperature"],
      stream: false,
    });
    expect(body).not.toHaveProperty("repetition_penalty");
  });

  it("asks for no parsing: the server would refuse a whole reply for half a character", () => {
    expect(JSON.parse(llamacpp.ids(call()).body)).toHaveProperty("chat_parser");
    expect(JSON.parse(adapter(false).ids(call()).body)).not.toHaveProperty("chat_parser");
  });

  it("leaves the server's own sampling alone when that is wanted", () => {
    const body = JSON.parse(llamacpp.ids(call({ sampling: new Map() })).body) as Record<string, unknown>;
    expect(body).not.toHaveProperty("samplers");
  });

  it("gives the harness's own sampling and stop strings", () => {
    const request = { sampling: { temperature: 0.5, repetition_penalty: 1.1, seed: 7 }, stop: ["x"] };
    expect(JSON.parse(llamacpp.ids(call({ request })).body)).toMatchObject({
      temperature: 0.5,
      repeat_penalty: 1.1,
      repeat_last_n: 10,
      seed: 7,
      stop: ["x"],
    });
  });

  it.each([
    [
      "response_format",
      { sampling: {}, stop: [], constraints: new Map([["response_format", '{"type":"json_object"}']]) },
    ],
    ["stop_token_ids", { sampling: {}, stop: [], constraints: new Map([["stop_token_ids", "[3]"]]) }],
    ["min_tokens", { sampling: { min_tokens: 3 }, stop: [] }],
  ])("refuses %s, which the route would ignore", (name, request) => {
    expect(() => llamacpp.ids(call({ request }))).toThrow(name);
  });
});

describe("a reply of llama.cpp", () => {
  it("is whole evidence: every id, the log of its probability, counted prompt, end of turn", () => {
    const sampled = read(reply([5, 9], [entry(5, 0.5), entry(9, 0.25)]));
    expect(plain(sampled)).toEqual({
      prompt: [1, 2],
      ids: [5, 9],
      logprobs: [Math.fround(Math.log(0.5)), Math.fround(Math.log(0.25))],
      finish: "stop",
      stop: null,
      defects: [],
      versions: [],
    });
    expect(sampled.usage).toEqual({ prompt: 2, completion: 2, cached: 1, reasoning: null });
  });

  it("marks a character's first tokens, which the server gives no value for, and keeps every id", () => {
    const sampled = read(reply([127, 102, 160, 116, 255, 9], [entry(102, 0.5), entry(255, 0.5), entry(9, 0.5)]));
    expect([...sampled.ids]).toEqual([127, 102, 160, 116, 255, 9]);
    expect(sampled.gaps.map((gap) => gap.index)).toEqual([0, 2, 3]);
    expect(sampled.defects).toEqual(["logprob_not_finite"]);
  });

  it("marks the tail that a stop string cuts off the values", () => {
    const sampled = read(reply([5, 6, 7], [entry(5, 0.5), entry(6, 0.5)], { stop_type: "word", stopping_word: "xy" }));
    expect(plain(sampled)).toMatchObject({ finish: "stop", stop: "xy", defects: ["logprob_not_finite"] });
    expect(sampled.gaps.map((gap) => gap.index)).toEqual([2]);
  });

  it("takes the made-up certainty of a drafted token for a missing value", () => {
    const drafted = { id: 6, token: "?", bytes: [], prob: 1, top_probs: [] };
    expect(read(reply([5, 6], [entry(5, 0.5), drafted])).gaps.map((gap) => gap.index)).toEqual([1]);
  });

  it("is no evidence when the server counts another prompt than it was sent, or another answer", () => {
    expect(read(reply([5], [entry(5, 0.5)], { tokens_evaluated: 3 })).defects).toEqual(["prompt_count_disagrees"]);
    expect(read(reply([5], [entry(5, 0.5)], { tokens_predicted: 2 })).defects).toEqual(["completion_count_disagrees"]);
  });

  it("is no evidence when the values belong to other ids", () => {
    expect(read(reply([5, 6], [entry(6, 0.5), entry(5, 0.5), entry(6, 0.5)])).defects).toEqual([
      "ids_logprobs_disagree",
    ]);
  });

  it("is aborted when the context was shifted under it", () => {
    expect(read(reply([5], [entry(5, 0.5)], { truncated: true })).defects).toEqual(["aborted"]);
  });

  it("reads a server without probabilities behind the chain as raw", () => {
    const old = { id: 5, logprob: -0.5, top_logprobs: [{ id: 5, logprob: -0.5 }] };
    expect(plain(read(reply([5], [old]))).logprobs).toEqual([-0.5]);
    expect(llamacpp.logprobMode([reply([5], [old])])).toBe("raw");
    expect(llamacpp.logprobMode([reply([5], [entry(5, 0.5)])])).toBe("processed");
  });

  it("says overflow in words that are understood", () => {
    const message = "request (2050 tokens) exceeds the available context size (2048 tokens), try increasing it";
    expect(classify(400, message, null).kind).toBe("context_overflow");
  });
});

describe("values that carry their id", () => {
  it("go to the one place where they can belong", () => {
    expect(placeById([1, 2, 3], [1, 2, 3])).toEqual([0, 1, 2]);
    expect(placeById([1, 2, 3], [1, 3])).toEqual([0, null, 1]);
    expect(placeById([1, 2, 1, 3], [2, 3])).toEqual([null, 0, null, 1]);
  });

  it("go nowhere when there are two such places", () => {
    expect(placeById([4, 4], [4])).toEqual([null, null]);
    expect(placeById([1, 4, 4, 2], [1, 4, 2])).toEqual([0, null, null, 2]);
  });

  it("are refused as a whole when they are of other ids", () => {
    expect(placeById([1, 2], [2, 1])).toBeNull();
    expect(placeById([1], [1, 1])).toBeNull();
  });
});
