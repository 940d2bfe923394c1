import { describe, expect, it } from "vitest";
import { engines, post, streamed } from "./support/running.js";

const { start, script } = engines();
const EVIDENCE = { logprobs: 0, return_token_ids: true, return_tokens_as_token_ids: true };
const echoes = [
  { match: { contains: "one" }, reply: { content: "1" } },
  { match: { contains: "two" }, reply: { content: "2" } },
];

describe("completions", () => {
  it("take a prompt as text or as ids, and say which ids they saw, per choice", async () => {
    const engine = await start({ policy: script(echoes) });
    const { body: tokenized } = await post(`${engine.url}/tokenize`, { prompt: "say one" });
    expect(tokenized).toMatchObject({ count: tokenized.tokens.length, max_model_len: 262_144, token_strs: null });
    for (const prompt of ["say one", tokenized.tokens]) {
      const { status, body } = await post(`${engine.url}/v1/completions`, { model: "policy", prompt, ...EVIDENCE });
      expect(status).toBe(200);
      expect(body).toMatchObject({ object: "text_completion", model: "policy" });
      expect(body.prompt_token_ids).toBeUndefined();
      expect(body.choices[0]).toMatchObject({
        text: "1",
        finish_reason: "stop",
        stop_reason: null,
        prompt_token_ids: tokenized.tokens,
      });
      const { token_ids, logprobs } = body.choices[0];
      expect(logprobs.tokens).toEqual(token_ids.map((id: number) => `token_id:${id}`));
      expect(logprobs.token_logprobs).toHaveLength(token_ids.length);
      expect(logprobs.text_offset[0]).toBe(0);
      expect(body.usage).toEqual({
        prompt_tokens: tokenized.count,
        completion_tokens: token_ids.length,
        total_tokens: tokenized.count + token_ids.length,
        prompt_tokens_details: null,
      });
    }
  });

  it("answer a batch in order, n choices a prompt", async () => {
    const engine = await start({ policy: script(echoes) });
    const ids = await Promise.all(
      ["say two", "say one"].map(
        async (prompt) => (await post(`${engine.url}/tokenize`, { prompt })).body.tokens as number[],
      ),
    );
    for (const prompt of [["say two", "say one"], ids]) {
      const { body } = await post(`${engine.url}/v1/completions`, { prompt, n: 2, return_token_ids: true });
      expect(body.choices.map((choice: { index: number; text: string }) => [choice.index, choice.text])).toEqual([
        [0, "2"],
        [1, "2"],
        [2, "1"],
        [3, "1"],
      ]);
      expect(body.choices.map((choice: { prompt_token_ids: number[] }) => choice.prompt_token_ids)).toEqual([
        ids[0],
        ids[0],
        ids[1],
        ids[1],
      ]);
    }
  });

  it("stream prompt ids with the first chunk of each choice only, and ids as deltas", async () => {
    const engine = await start({ policy: script(echoes) });
    const events = await streamed(`${engine.url}/v1/completions`, {
      prompt: ["two", "one"],
      ...EVIDENCE,
      stream_options: { include_usage: true },
    });
    expect(events.at(-1)).toBe("[DONE]");
    for (const index of [0, 1]) {
      const chunks = events
        .slice(0, -1)
        .flatMap((event) => event.choices.filter((choice: { index: number }) => choice.index === index));
      expect(chunks.map((chunk) => "prompt_token_ids" in chunk)).toEqual(chunks.map((_, at) => at === 0));
      expect(chunks.map(({ text }) => text).join("")).toBe(index === 0 ? "2" : "1");
      expect(chunks.map(({ finish_reason }) => finish_reason)).toEqual([...chunks.slice(1).map(() => null), "stop"]);
      expect(
        chunks.every(
          ({ token_ids, logprobs }) => token_ids.length === 1 && logprobs.tokens[0] === `token_id:${token_ids[0]}`,
        ),
      ).toBe(true);
    }
    expect(events.at(-2)).toMatchObject({ choices: [], usage: { completion_tokens: 4 } });
  });

  it("sample 16 tokens unless told otherwise, and end with length", async () => {
    const engine = await start({ policy: script([{ reply: { content: "ab ".repeat(40) } }]) });
    const { body } = await post(`${engine.url}/v1/completions`, { prompt: "x", return_token_ids: true });
    expect(body.choices[0]).toMatchObject({ finish_reason: "length", stop_reason: null });
    expect(body.choices[0].token_ids).toHaveLength(16);
    const more = await post(`${engine.url}/v1/completions`, { prompt: "x", max_tokens: 3 });
    expect(more.body.usage.completion_tokens).toBe(3);
  });

  it("cut the text at a stop string but keep the ids that spelled it", async () => {
    const engine = await start({ policy: script([{ reply: { content: "one\nEND two" } }]) });
    const request = { prompt: "x", max_tokens: 50, return_token_ids: true };
    const { body } = await post(`${engine.url}/v1/completions`, { ...request, stop: ["END"] });
    expect(body.choices[0]).toMatchObject({ text: "one\n", finish_reason: "stop", stop_reason: "END" });
    const spelled = await post(`${engine.url}/detokenize`, { tokens: body.choices[0].token_ids });
    expect(spelled.body.prompt).toBe("one\nEND");
    const kept = await post(`${engine.url}/v1/completions`, {
      ...request,
      stop: "END",
      include_stop_str_in_output: true,
    });
    expect(kept.body.choices[0].text).toBe("one\nEND");
    const events = await streamed(`${engine.url}/v1/completions`, { ...request, stop: "END" });
    expect(
      events
        .slice(0, -1)
        .map((event) => event.choices[0].text)
        .join(""),
    ).toBe("one\n");
  });

  it("stop at a stop token, which is in the ids and not in the text", async () => {
    const engine = await start({ policy: script([{ reply: { content: "a!b" } }]) });
    const { body: bang } = await post(`${engine.url}/tokenize`, { prompt: "!" });
    const { body } = await post(`${engine.url}/v1/completions`, {
      prompt: "x",
      stop_token_ids: bang.tokens,
      return_token_ids: true,
    });
    expect(body.choices[0]).toMatchObject({ text: "a", finish_reason: "stop", stop_reason: bang.tokens[0] });
    expect(body.choices[0].token_ids.at(-1)).toBe(bang.tokens[0]);
  });

  it("show special tokens on request, and go on past the end token when told to ignore it", async () => {
    const engine = await start({ policy: script([{ reply: { raw: "a<|im_end|>b<think>" } }]) });
    const hidden = await post(`${engine.url}/v1/completions`, { prompt: "x", ignore_eos: true });
    expect(hidden.body.choices[0]).toMatchObject({ text: "ab<think>", finish_reason: "length" });
    const shown = await post(`${engine.url}/v1/completions`, {
      prompt: "x",
      ignore_eos: true,
      skip_special_tokens: false,
    });
    expect(shown.body.choices[0].text).toBe("a<|im_end|>b<think><|im_end|>");
    const ended = await post(`${engine.url}/v1/completions`, {
      prompt: "x",
      include_stop_str_in_output: true,
      skip_special_tokens: false,
    });
    expect(ended.body.choices[0]).toMatchObject({ text: "a<|im_end|>", finish_reason: "stop", stop_reason: null });
  });

  it("count what a prefix cache would hold when told to", async () => {
    const engine = await start({ policy: script(echoes), promptTokensDetails: true });
    const cached = async (prompt: string) =>
      (await post(`${engine.url}/v1/completions`, { prompt })).body.usage.prompt_tokens_details.cached_tokens as number;
    const { body } = await post(`${engine.url}/tokenize`, { prompt: "say one" });
    expect(await cached("say one")).toBe(0);
    expect(await cached("say one")).toBe(body.count - 1);
    expect(await cached("zzz")).toBe(0);
  });
});

describe("ids in, ids out", () => {
  it("answer with ids, log probabilities by id, usage and weight versions", async () => {
    const engine = await start({ policy: script(echoes) });
    const { body: prompt } = await post(`${engine.url}/tokenize`, { prompt: "one" });
    const request = {
      token_ids: prompt.tokens,
      sampling_params: { max_tokens: 8, logprobs: 0 },
      return_token_ids: true,
    };
    const { body } = await post(`${engine.url}/inference/v1/generate`, request, { headers: { "x-request-id": "g-1" } });
    expect(body).toMatchObject({
      request_id: "g-1",
      model: "policy",
      output_mode: "tokens",
      prompt_token_ids: prompt.tokens,
    });
    const [choice] = body.choices;
    expect(choice.finish_reason).toBe("stop");
    expect(choice.logprobs.content.map((entry: { token_id: number }) => entry.token_id)).toEqual(choice.token_ids);
    expect(choice.logprobs.content[0]).toMatchObject({ rank: 1, top_logprobs: [] });
    expect(choice.weight_versions).toEqual([{ version: "default", start: 0, end: choice.token_ids.length }]);
    expect(body.usage.completion_tokens).toBe(choice.token_ids.length);
    const events = await streamed(`${engine.url}/inference/v1/generate`, request);
    expect(events.slice(0, -1).flatMap((event) => event.choices[0].token_ids)).toEqual(choice.token_ids);
    expect(events.at(-2).choices[0].finish_reason).toBe("stop");
  });
});
