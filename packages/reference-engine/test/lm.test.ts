import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { engines, get, post, streamed } from "./support/running.js";

const { dir, start } = engines();
const MESSAGES = [{ role: "user", content: "list the files" }];
const EVIDENCE = { logprobs: true, return_token_ids: true, max_tokens: 24, ignore_eos: true };

interface Sampled {
  prompt: number[];
  ids: number[];
  logprobs: number[];
}

function sampled(body: {
  prompt_token_ids: number[];
  choices: { token_ids: number[]; logprobs: { content: { logprob: number }[] } }[];
}): Sampled {
  const [choice] = body.choices;
  return {
    prompt: body.prompt_token_ids,
    ids: choice?.token_ids ?? [],
    logprobs: choice?.logprobs.content.map(({ logprob }) => logprob) ?? [],
  };
}

describe("the language model behind the engine", () => {
  it.each([1, 0.5, 1.6])("scores a prompt bit for bit as it sampled it, at temperature %s", async (temperature) => {
    const engine = await start();
    const { body } = await post(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, temperature, ...EVIDENCE });
    const { prompt, ids, logprobs } = sampled(body);
    expect(ids).toHaveLength(24);
    expect(logprobs.every((value) => Math.fround(value) === value && value <= 0)).toBe(true);
    const scoring = {
      prompt: [...prompt, ...ids],
      max_tokens: 1,
      prompt_logprobs: 2,
      prompt_logprobs_temperature: temperature,
    };
    const scored = (await post(`${engine.url}/v1/completions`, scoring)).body.choices[0].prompt_logprobs;
    expect(scored).toHaveLength(prompt.length + ids.length);
    expect(scored[0]).toBeNull();
    expect(ids.map((id, at) => scored[prompt.length + at][id].logprob)).toEqual(logprobs);
    expect(Object.keys(scored[5]).length).toBeGreaterThanOrEqual(2);
    const best = Object.values(scored[5] as Record<string, { rank: number; logprob: number }>).filter(
      ({ rank }) => rank === 1,
    );
    expect(best).toHaveLength(1);
  });

  it("reports temperature-scaled values unless it was started in raw mode", async () => {
    const request = { messages: MESSAGES, temperature: 0.5, seed: 3, ...EVIDENCE };
    const processed = sampled((await post(`${(await start()).url}/v1/chat/completions`, request)).body);
    const rawEngine = await start({ logprobsMode: "raw" });
    const raw = sampled((await post(`${rawEngine.url}/v1/chat/completions`, request)).body);
    expect(raw.ids).toEqual(processed.ids);
    expect(raw.logprobs).not.toEqual(processed.logprobs);
    const scoring = { prompt: [...raw.prompt, ...raw.ids], max_tokens: 1, prompt_logprobs: 0 };
    const scored = (await post(`${rawEngine.url}/v1/completions`, scoring)).body.choices[0].prompt_logprobs;
    expect(raw.ids.map((id, at) => scored[raw.prompt.length + at][id].logprob)).toEqual(raw.logprobs);
  });

  it("draws the same tokens for the same seed, and others for another", async () => {
    const engine = await start();
    const draw = async (seed: number) =>
      sampled((await post(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, seed, ...EVIDENCE })).body);
    expect(await draw(1)).toEqual(await draw(1));
    expect((await draw(1)).ids).not.toEqual((await draw(2)).ids);
    const events = await streamed(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, seed: 1, ...EVIDENCE });
    expect(events.slice(0, -1).flatMap((event) => event.choices[0].token_ids ?? [])).toEqual((await draw(1)).ids);
  });

  it("without a seed draws by the prompt and how often it was seen, in whatever order requests come", async () => {
    const ask = async (url: string, content: string) =>
      sampled((await post(`${url}/v1/chat/completions`, { messages: [{ role: "user", content }], ...EVIDENCE })).body)
        .ids;
    const a = await start();
    const first = [await ask(a.url, "x"), await ask(a.url, "x"), await ask(a.url, "y")];
    expect(first[0]).not.toEqual(first[1]);
    const b = await start();
    const [y, ...xs] = await Promise.all(["y", "x", "x"].map((content) => ask(b.url, content)));
    expect(y).toEqual(first[2]);
    expect(new Set(xs.map(String))).toEqual(new Set([String(first[0]), String(first[1])]));
    const c = await start({ seed: 7 });
    expect(await ask(c.url, "x")).not.toEqual(first[0]);
  });

  it("gives n choices of their own, and temperature 0 always the most probable token", async () => {
    const engine = await start();
    const { body } = await post(`${engine.url}/v1/chat/completions`, {
      messages: MESSAGES,
      n: 2,
      seed: 4,
      ...EVIDENCE,
    });
    expect(body.choices.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
    expect(body.choices[0].token_ids).not.toEqual(body.choices[1].token_ids);
    const greedy = await post(`${engine.url}/v1/chat/completions`, {
      messages: MESSAGES,
      temperature: 0,
      ...EVIDENCE,
      top_logprobs: 1,
    });
    for (const entry of greedy.body.choices[0].logprobs.content)
      expect(entry.top_logprobs[0]).toEqual({ ...entry, top_logprobs: undefined });
  });

  it("applies filters and penalties, and reports what was really drawn from", async () => {
    const engine = await start();
    const ask = async (more: object) =>
      sampled(
        (await post(`${engine.url}/v1/chat/completions`, { messages: MESSAGES, seed: 6, ...EVIDENCE, ...more })).body,
      );
    const greedy = await ask({ temperature: 0 });
    for (const filter of [{ top_k: 1 }, { top_p: 1e-6 }, { min_p: 1 }]) {
      const only = await ask(filter);
      expect(only.ids).toEqual(greedy.ids);
      expect(only.logprobs.every((value) => value === 0)).toBe(true);
    }
    const free = await ask({});
    expect((await ask({ top_k: -1, top_p: 1, min_p: 0, repetition_penalty: 1 })).ids).toEqual(free.ids);
    expect((await ask({ frequency_penalty: 2, temperature: 0 })).ids).not.toEqual(greedy.ids);
  });

  it("logs exactly the prompt it saw and what it sampled", async () => {
    const logFile = join(dir, "log.ndjson");
    const engine = await start({ logFile });
    const request = { messages: MESSAGES, seed: 5, ...EVIDENCE };
    const { body } = await post(`${engine.url}/v1/chat/completions`, request, { headers: { "x-request-id": "r-1" } });
    const { prompt, ids, logprobs } = sampled(body);
    expect(body.id).toBe("chatcmpl-r-1");
    const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        n: 1,
        request_id: "r-1",
        path: "/v1/chat/completions",
        model: "policy",
        prompt_ids: prompt,
        sampled_ids: ids,
        logprobs,
        finish: "length",
        seed: 5,
        aborted: false,
        fault: null,
      }),
    ]);
    expect((await get(`${engine.url}/test/log`)).body.entries).toHaveLength(1);
  });
});
