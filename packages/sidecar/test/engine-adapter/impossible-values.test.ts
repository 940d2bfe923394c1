/** In every engine's shape: a log probability that none can be, and a finish reason that no rule knows, are defects of the turn. */
import { describe, expect, it } from "vitest";
import { fireworks } from "../../src/engine-adapter/fireworks.js";
import { readLlamacppReply } from "../../src/engine-adapter/llamacpp.js";
import { sglang } from "../../src/engine-adapter/sglang.js";
import { sglangReader } from "../../src/engine-adapter/sglang-reply.js";
import { vllm } from "../../src/engine-adapter/vllm.js";
import { Collector } from "../../src/sample/sampled.js";
import type { ChunkReader } from "../../src/sample/sent-call.js";

const SENT = Int32Array.of(1, 2);
const USAGE = { prompt_tokens: 2, completion_tokens: 2 };
const IDS = {
  model: "policy",
  stream: false,
  sampling: new Map<string, string>(),
  request: { sampling: {}, stop: [] },
  promptIds: SENT,
  maxTokens: 4,
  stopTokenIds: [],
};
const CHAT = { model: "policy", stream: false, sampling: new Map<string, string>(), maxOutputTokens: null };

interface Shape {
  name: string;
  reader: () => ChunkReader;
  reply(value: unknown, finish: unknown): unknown;
}

const chat = (value: unknown, finish: unknown) => ({
  prompt_token_ids: [1, 2],
  choices: [
    {
      message: { role: "assistant", content: "a" },
      token_ids: [5, 6],
      logprobs: { content: [{ logprob: -1 }, { logprob: value }] },
      finish_reason: finish,
    },
  ],
  usage: USAGE,
});
const completion = (value: unknown, finish: unknown) => ({
  choices: [
    {
      prompt_token_ids: [1, 2],
      token_ids: [5, 6],
      logprobs: { token_logprobs: [-1, value] },
      finish_reason: finish,
    },
  ],
  usage: USAGE,
});
const chatBody = '{"messages":[{"role":"user","content":"a"}]}';

const SHAPES: Shape[] = [
  { name: "vLLM chat", reader: () => vllm(false).chat!({ ...CHAT, chatBody }).reader(), reply: chat },
  { name: "vLLM completions", reader: () => vllm(false).ids(IDS).reader(), reply: completion },
  { name: "vLLM tokens", reader: () => vllm(true).ids(IDS).reader(), reply: chat },
  { name: "SGLang chat", reader: () => sglang.chat!({ ...CHAT, chatBody }).reader(), reply: chat },
  {
    name: "SGLang generate",
    reader: () => sglangReader(SENT),
    reply: (value, finish) => ({
      output_ids: [5, 6],
      meta_info: {
        finish_reason: { type: finish },
        ...USAGE,
        output_token_logprobs: [
          [-1, 5, null],
          [value, 6, null],
        ],
      },
    }),
  },
  {
    name: "Fireworks",
    reader: () => fireworks.ids(IDS).reader(),
    reply: (value, finish) => ({
      choices: [
        {
          prompt_token_ids: [1, 2],
          token_ids: [5, 6],
          logprobs: {
            content: [
              { logprob: -1, sampling_logprob: -1 },
              { logprob: -1, sampling_logprob: value },
            ],
          },
          finish_reason: finish,
        },
      ],
      usage: USAGE,
    }),
  },
];

function defectsOf({ reader, reply }: Shape, value: unknown, finish: unknown): string[] {
  const collector = new Collector(SENT, true);
  collector.add(reader()(reply(value, finish)));
  return collector.result().defects;
}

describe.each(SHAPES)("$name", (shape) => {
  it("is whole with a value that can be", () => {
    expect(defectsOf(shape, -0.5, "stop")).toEqual([]);
  });

  it.each([0.25, 12, Number.POSITIVE_INFINITY])("a log probability of %s is impossible (O.92)", (value) => {
    expect(defectsOf(shape, value, "stop")).toContain("logprob_positive");
  });

  it.each([null, Number.NaN, Number.NEGATIVE_INFINITY, "-0.5"])("%s in its place is missing (O.92)", (value) => {
    expect(defectsOf(shape, value, "stop")).toEqual(["logprob_not_finite"]);
  });

  it.each(["cancelled", "", "content_filter"])("a finish of %j is not known (O.93)", (finish) => {
    expect(defectsOf(shape, -0.5, finish)).toEqual(["finish_unknown"]);
  });
});

describe("llama.cpp", () => {
  const reply = (prob: number) => ({
    tokens: [5],
    tokens_evaluated: 2,
    tokens_predicted: 1,
    stop: true,
    stop_type: "eos",
    completion_probabilities: [{ id: 5, prob, top_probs: [{ id: 5, prob }] }],
  });
  const defects = (prob: number) => {
    const collector = new Collector(SENT, true);
    collector.add(readLlamacppReply(reply(prob), SENT));
    return collector.result().defects;
  };

  it("a probability above 1 is impossible beyond the noise of float32 (O.92)", () => {
    expect(defects(1)).toEqual([]);
    expect(defects(1.0000001)).toEqual([]);
    expect(defects(1.5)).toContain("logprob_positive");
  });

  it("an end of a kind that is not known is no end (O.93)", () => {
    const collector = new Collector(SENT, true);
    collector.add(readLlamacppReply({ ...reply(0.5), stop_type: "cancelled" }, SENT));
    expect(collector.result().defects).toEqual(["finish_missing"]);
  });
});
