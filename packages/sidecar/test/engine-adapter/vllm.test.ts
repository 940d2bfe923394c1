import { describe, expect, it } from "vitest";
import type { IdsCall } from "../../src/engine-adapter/adapter.js";
import { vllm } from "../../src/engine-adapter/vllm.js";
import { collected, ids, plain } from "./replies.js";

const SENT = ids(1, 2);
const call = (fields: Partial<IdsCall> = {}): IdsCall => ({
  model: "policy",
  promptIds: SENT,
  maxTokens: 7,
  stream: true,
  sampling: new Map([["top_k", "-1"]]),
  stopTokenIds: [9],
  request: { sampling: { temperature: 0.5, seed: 4 }, stop: ["x"], constraints: new Map([["stop_token_ids", "[8]"]]) },
  ...fields,
});

describe("prompt ids for vLLM", () => {
  it("go to the token route by the engine's own parameter names, where it is there", () => {
    const { path, body } = vllm(true).ids(call());
    expect(path).toBe("/inference/v1/generate");
    expect(JSON.parse(body)).toEqual({
      model: "policy",
      token_ids: [1, 2],
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      sampling_params: {
        max_tokens: 7,
        logprobs: 1,
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        temperature: 0.5,
        seed: 4,
        top_k: -1,
        stop: ["x"],
        stop_token_ids: [9, 8],
      },
    });
  });

  it("go to the completions route where it is not, and with what only that one understands", () => {
    expect(vllm(false).ids(call()).path).toBe("/v1/completions");
    const request = { sampling: {}, stop: [], constraints: new Map([["response_format", '{"type":"json_object"}']]) };
    expect(vllm(true).ids(call({ request })).path).toBe("/v1/completions");
  });

  it("come back from the token route with the versions of the weights that sampled each span", () => {
    const entry = (token_id: number, logprob: number) => ({ token_id, logprob, rank: 1, top_logprobs: [] });
    const piece = (fields: object) => ({ request_id: "g1", usage: null, output_mode: "tokens", ...fields });
    const versions = [
      { version: "step-1", start: 0, end: 1 },
      { version: "step-2", start: 1, end: 2 },
    ];
    const pieces = [
      piece({
        prompt_token_ids: [1, 2],
        choices: [{ index: 0, finish_reason: null, token_ids: [5], logprobs: { content: [entry(5, -0.25)] } }],
      }),
      piece({
        choices: [
          {
            index: 0,
            finish_reason: "stop",
            stop_reason: null,
            token_ids: [9],
            weight_versions: versions,
            logprobs: { content: [entry(9, -0.5)] },
          },
        ],
      }),
      piece({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 2 } }),
    ];
    const sampled = collected(vllm(true).ids(call()).reader(), pieces, SENT);
    expect(plain(sampled)).toEqual({
      prompt: [1, 2],
      ids: [5, 9],
      logprobs: [-0.25, -0.5],
      finish: "stop",
      stop: null,
      defects: [],
      versions,
    });
    expect(sampled.upstreamId).toBe("cmpl-g1");
  });
});
