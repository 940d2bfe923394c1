/** What an engine had in its cache, beside what it could have had: on record, and shown. The number is that of docs/bug-table.md. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { explainTurn, inspectTrajectory } from "@tito/materializer";
import { startEngine } from "@tito/reference-engine";
import { startSidecar } from "@tito/sidecar";
import { expect, onTestFinished, test } from "vitest";

test("the cached count stands beside the expected prefix, in inspect and explain (C11.78)", async () => {
  const root = mkdtempSync(join(tmpdir(), "tito-cache-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const script = join(root, "script.json");
  writeFileSync(script, JSON.stringify([{ reply: { content: "one two three" } }]));
  const engine = await startEngine({ policy: `script:${script}`, testMode: true, promptTokensDetails: true });
  onTestFinished(() => engine.close());
  const options = { upstream: engine.url, model: "policy", trajectoryId: "t1", secrets: {}, out: root };
  const sidecar = await startSidecar(options, { log: () => undefined });
  const ask = async (messages: object[]) => {
    const { openai_base_url, api_key } = sidecar.endpoint;
    const response = await fetch(`${openai_base_url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${api_key}` },
      body: JSON.stringify({ model: "policy", messages }),
    });
    expect(response.status).toBe(200);
    await response.text();
  };
  const hello = { role: "user", content: "hello" };
  await ask([hello]);
  await ask([hello, { role: "assistant", content: "one two three" }, { role: "user", content: "again" }]);
  await sidecar.close("test");

  const [first, second] = inspectTrajectory(join(root, "t1")).turns;
  const line = first!.prompt_tokens! + first!.sampled_tokens;
  expect(first!.expected_prefix_tokens).toBe(0);
  expect(second!.expected_prefix_tokens).toBe(line);
  expect(second!.cached_tokens).toBeGreaterThan(0);
  expect(explainTurn({ path: join(root, "t1"), turn: 1 })).toMatchObject({
    cached_tokens: second!.cached_tokens,
    expected_prefix_tokens: line,
  });
});
