import { expect, it } from "vitest";
import { chat } from "../../src/dialect/chat.js";
import type { DialectError } from "../../src/dialect/neutral.js";
import { dialectError } from "../../src/sample/engine-failure.js";
import { countPromptTokens } from "../../src/sample/token-count.js";
import type { Upstream, UpstreamResponse } from "../../src/sample/upstream.js";

/** An engine that answers every count alike and keeps what it was asked. */
function counting(status = 200, text = '{"count": 7}'): { upstream: Upstream; bodies: string[] } {
  const bodies: string[] = [];
  const answer: UpstreamResponse = {
    status,
    header: () => null,
    read: async () => undefined,
    text: async () => text,
  };
  const upstream: Upstream = {
    base: "http://engine",
    send: async ({ path, body }) => {
      bodies.push(`${path} ${body}`);
      return answer;
    },
    close: () => undefined,
  };
  return { upstream, bodies };
}

it("asks with reasoning under both names, and everything else as it was spelled", async () => {
  const { upstream, bodies } = counting();
  const messages = [
    '{"role":"user","content":"1e3"}',
    '{"role":"assistant","reasoning":"w\\u0068y", "content":"a"}',
    '{"role":"assistant", "reasoning_content":"b","content":null}',
    '{"role":"assistant","reasoning":"x","reasoning_content":"y"}',
  ];
  const chat = `{"model":"other","stream":true,"messages":[ ${messages.join(" , ")}],"tools":[]}`;
  expect(await countPromptTokens(upstream, "policy", chat)).toBe(7);
  expect(bodies).toEqual([
    '/tokenize {"model":"policy","messages":[{"role":"user","content":"1e3"},' +
      '{"role":"assistant","reasoning":"w\\u0068y", "content":"a","reasoning_content":"w\\u0068y"},' +
      '{"role":"assistant", "reasoning_content":"b","content":null,"reasoning":"b"},' +
      '{"role":"assistant","reasoning":"x","reasoning_content":"y"}],"tools":[]}',
  ]);
});

it.each([
  [429, "slow down", 503, true],
  [500, "boom", 503, true],
  [503, "", 503, true],
  [400, "no such role", 400, false],
  [400, "the prompt is longer than the maximum model length of 40", 400, false],
  [401, "no", 503, false],
  [404, "no such route", 503, false],
  [307, "elsewhere", 503, false],
  [204, "", 503, false],
])(
  "an engine that answers %i (%s) while it counts: %i, retryable: %s (O.11)",
  async (status, words, told, retryable) => {
    const { upstream } = counting(status, words);
    const failure = await countPromptTokens(upstream, "policy", '{"messages":[]}').catch(dialectError);
    expect(failure).toMatchObject({ retryable });
    expect(chat.error(failure as DialectError).status).toBe(told);
  },
);
