import { describe, expect, it } from "vitest";
import { vllmCompletionBody } from "../../src/engine-adapter/vllm-body.js";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { Collector } from "../../src/sample/sampled.js";

const chunk = (ids: number[], fields: Record<string, unknown> = {}, usage?: [number, number]) =>
  readEngineChunk({
    choices: [{ index: 0, token_ids: ids, logprobs: { token_logprobs: ids.map((id) => -id) }, ...fields }],
    ...(usage === undefined ? {} : { usage: { prompt_tokens: usage[0], completion_tokens: usage[1] } }),
  });

describe("a completion that the engine aborted and that goes on", () => {
  it("is one reply: ids, log probabilities, usage and version spans add up", () => {
    const collector = new Collector(Int32Array.of(1, 2));
    collector.add(chunk([3, 4], { prompt_token_ids: [1, 2] }));
    collector.add(chunk([], { finish_reason: "abort" }, [2, 2]));
    expect(collector.whole).toBe(true);
    collector.resume("a", "b");
    collector.add(chunk([5], { prompt_token_ids: [1, 2, 3, 4] }));
    collector.add(chunk([6], { finish_reason: "stop" }, [4, 2]));
    const sampled = collector.result();
    expect(sampled).toMatchObject({ finish: "stop", defects: [], usage: { prompt: 2, completion: 4 } });
    expect([...sampled.promptIds!]).toEqual([1, 2]);
    expect([...sampled.ids]).toEqual([3, 4, 5, 6]);
    expect([...sampled.logprobs!]).toEqual([-3, -4, -5, -6]);
    expect(sampled.versions).toEqual([
      { version: "a", start: 0, end: 2 },
      { version: "b", start: 2, end: 4 },
    ]);
  });

  it("takes the versions that the replies tell over those of the info route", () => {
    const collector = new Collector(Int32Array.of(1));
    const told = (version: string, end: number) => ({ weight_versions: [{ version, start: 0, end }] });
    collector.add(chunk([3], { prompt_token_ids: [1], finish_reason: "abort", ...told("x", 1) }));
    collector.resume("a", "b");
    collector.add(chunk([4, 5], { prompt_token_ids: [1, 3], finish_reason: "stop", ...told("y", 2) }));
    expect(collector.result().versions).toEqual([
      { version: "x", start: 0, end: 1 },
      { version: "y", start: 1, end: 3 },
    ]);
  });

  it("is marked when the engine reports another prompt than was sent, at first or later", () => {
    const first = new Collector(Int32Array.of(1, 2));
    first.add(chunk([3], { prompt_token_ids: [1, 7], finish_reason: "stop" }, [2, 1]));
    expect(first.result().defects).toEqual(["prompt_changed"]);
    const later = new Collector(Int32Array.of(1));
    later.add(chunk([3], { prompt_token_ids: [1], finish_reason: "abort" }));
    later.resume(null, null);
    later.add(chunk([4], { prompt_token_ids: [1, 4], finish_reason: "stop" }, [2, 1]));
    expect(later.result().defects).toEqual(["prompt_changed"]);
  });
});

describe("the body for prompt ids", () => {
  it("says everything explicitly; the harness's own sampling wins", () => {
    const request = {
      sampling: { temperature: 0.5, seed: 3 },
      stop: ["x"],
      constraints: new Map([["stop_token_ids", "[8]"]]),
    };
    const body = vllmCompletionBody(request, {
      model: "m",
      promptIds: Int32Array.of(1, 2),
      maxTokens: 9,
      stream: true,
      sampling: new Map([["top_p", "1"]]),
      stopTokenIds: [7],
    });
    expect(JSON.parse(body)).toEqual({
      model: "m",
      prompt: [1, 2],
      max_tokens: 9,
      stream: true,
      stream_options: { include_usage: true },
      logprobs: 1,
      return_token_ids: true,
      return_tokens_as_token_ids: true,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      add_special_tokens: false,
      top_p: 1,
      temperature: 0.5,
      seed: 3,
      stop: ["x"],
      stop_token_ids: [7, 8],
    });
  });
});
