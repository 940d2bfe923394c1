import { expect, it } from "vitest";
import { countPromptTokens } from "../../src/sample/token-count.js";
import type { Upstream, UpstreamResponse } from "../../src/sample/upstream.js";

/** An engine that answers every count with 7 and keeps what it was asked. */
function counting(): { upstream: Upstream; bodies: string[] } {
  const bodies: string[] = [];
  const answer: UpstreamResponse = {
    status: 200,
    header: () => null,
    chunks: (async function* () {})(),
    text: async () => '{"count": 7}',
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
