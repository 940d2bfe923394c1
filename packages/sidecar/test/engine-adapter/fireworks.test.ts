import { describe, expect, it } from "vitest";
import type { IdsCall } from "../../src/engine-adapter/adapter.js";
import { fireworks } from "../../src/engine-adapter/fireworks.js";
import { collected, ids, plain } from "./replies.js";

const SENT = ids(1, 2, 3);
const call = (fields: Partial<IdsCall> = {}): IdsCall => ({
  model: "accounts/a/models/m#accounts/a/deployments/d",
  promptIds: SENT,
  maxTokens: 7,
  stream: false,
  sampling: new Map([["top_k", "-1"]]),
  stopTokenIds: [9],
  request: { sampling: { temperature: 0.5 }, stop: ["x"] },
  ...fields,
});
const entry = (token_id: number, logprob: number, sampling_logprob?: number) => ({
  token: "?",
  token_id,
  logprob,
  sampling_logprob,
});
const usage = { prompt_tokens: 3, completion_tokens: 2 };
const reply = (content: object[]) => ({
  id: "f1",
  choices: [
    {
      index: 0,
      text: "?",
      finish_reason: "stop",
      prompt_token_ids: [1, 2, 3],
      token_ids: [5, 9],
      logprobs: { content },
    },
  ],
  usage,
});
const read = (...pieces: unknown[]) => collected(fireworks.ids(call()).reader(), pieces, SENT);

describe("a call to Fireworks", () => {
  it("asks for ids, and for an error instead of a silently lowered limit", () => {
    expect(JSON.parse(fireworks.ids(call()).body)).toEqual({
      model: "accounts/a/models/m#accounts/a/deployments/d",
      prompt: [1, 2, 3],
      max_tokens: 7,
      stream: false,
      logprobs: true,
      top_logprobs: 1,
      return_token_ids: true,
      raw_output: false,
      context_length_exceeded_behavior: "error",
      temperature: 0.5,
      top_k: 0,
      stop: ["x"],
    });
  });

  it("asks the chat route for the same, behind the harness's own words", () => {
    const chatBody = '{"messages":[{"role":"user","content":"hi"}],"temperature":0.7}';
    const { body } = fireworks.chat!({
      chatBody,
      model: "m",
      stream: true,
      sampling: new Map([["top_k", "-1"]]),
      maxOutputTokens: 5,
    });
    expect(JSON.parse(body)).toMatchObject({
      temperature: 0.7,
      top_k: 0,
      return_token_ids: true,
      logprobs: true,
      context_length_exceeded_behavior: "error",
      stream_options: { include_usage: true },
    });
  });

  it("refuses stop ids of a request, and more stop strings than the API takes", () => {
    const request = { sampling: {}, stop: [], constraints: new Map([["stop_token_ids", "[8]"]]) };
    expect(() => fireworks.ids(call({ request }))).toThrow("stop_token_ids");
    expect(() => fireworks.ids(call({ request: { sampling: {}, stop: ["a", "b", "c", "d", "e"] } }))).toThrow("4 stop");
  });

  it("keeps the calls of a trajectory together", () => {
    expect(fireworks.headers("t1")).toEqual({ "x-multi-turn-session-id": "t1" });
  });
});

describe("a reply of Fireworks", () => {
  it("is recorded with what it was sampled with, not with the raw model's value", () => {
    const json = reply([entry(5, -0.75, -0.25), entry(9, -0.75, -0.5)]);
    expect(plain(read(json))).toMatchObject({ prompt: [1, 2, 3], ids: [5, 9], logprobs: [-0.25, -0.5], defects: [] });
    expect(fireworks.logprobMode([json])).toBe("processed");
  });

  it("without sampling values is raw, and does not mix the two", () => {
    const raw = reply([entry(5, -0.25), entry(9, -0.5)]);
    expect(plain(read(raw)).logprobs).toEqual([-0.25, -0.5]);
    expect(fireworks.logprobMode([raw])).toBe("raw");
    const mixed = read(reply([entry(5, -0.75, -0.25), entry(9, -0.5)]));
    expect(mixed.gaps).toEqual([{ index: 1, was: "missing" }]);
  });

  it("adds up from a stream, where prompt ids come first and usage last", () => {
    const piece = (fields: object) => ({ choices: [{ index: 0, text: "?", finish_reason: null, ...fields }] });
    const pieces = [
      piece({ prompt_token_ids: [1, 2, 3], token_ids: [5], logprobs: { content: [entry(5, -0.75, -0.25)] } }),
      piece({ token_ids: [9], logprobs: { content: [entry(9, -0.75, -0.5)] }, finish_reason: "stop" }),
      { choices: [], usage },
    ];
    expect(plain(read(...pieces))).toMatchObject({ ids: [5, 9], logprobs: [-0.25, -0.5], defects: [] });
  });

  it("that ends in an error is none, although its status is 200", () => {
    const json = {
      choices: [{ ...reply([entry(5, -1, -1), entry(9, -1, -1)]).choices[0], finish_reason: "error" }],
      usage,
    };
    expect(read(json).defects).toEqual(["aborted"]);
  });

  it("reads the older layout of log probabilities", () => {
    const logprobs = { tokens: ["?", "?"], token_ids: [5, 9], token_logprobs: [-0.25, -0.5] };
    const json = {
      choices: [{ index: 0, finish_reason: "stop", prompt_token_ids: [1, 2, 3], token_ids: [5, 9], logprobs }],
      usage,
    };
    expect(plain(read(json)).logprobs).toEqual([-0.25, -0.5]);
  });
});
