/** Answers that are on no record, given out because the user chose so; and what is recorded of who asked. */
import { text } from "node:stream/consumers";
import OpenAI from "openai";
import { expect, it } from "vitest";
import {
  engineLog,
  engineTest,
  postChat,
  scriptedEngine,
  serverBefore,
  signal,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const HELLO = { messages: [user("hello")] };

it("an answer that was never recorded is not replayed: a retry is a sample of its own, on record", async () => {
  const engine = await scriptedEngine(RULES);
  const [reached, asked] = signal();
  const [gate, open] = signal();
  const held = await serverBefore(engine, (request, response) => {
    if (request.url !== "/v1/chat/completions" || request.headers["x-tito-probe"] !== undefined) return false;
    void (async () => {
      const body = await text(request);
      asked();
      await gate;
      const answer = await fetch(`${engine.url}${request.url}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(Buffer.from(await answer.arrayBuffer()));
    })();
    return true;
  });
  const started = await startTestSidecar(held, { onUncaptured: "flag" });
  await engineTest(engine, "faults", { fault: { kind: "missing_ids" } });
  const gone = new AbortController();
  const first = postChat(started, HELLO, {}, gone.signal).catch(() => "gone");
  await reached;
  gone.abort();
  expect(await first).toBe("gone");
  await started.logged("orphaned");
  const retry = postChat(started, HELLO);
  await started.logged("adopted");
  open();
  const response = await retry;
  expect(response.headers.get("x-tito-uncaptured")).toBeNull();
  expect(((await response.json()) as { object: string }).object).toBe("chat.completion");
  const log = await started.sealed();
  expect(log.replays).toEqual([]);
  expect(log.uncaptured).toMatchObject([{ reason: "sampled_ids_missing", lost_tokens: true }]);
  const turns = turnsOf(log);
  expect(turns).toHaveLength(1);
  expect(log.deliveries.get(turns[0]!.record.call_id)).toMatchObject([{ outcome: "delivered" }]);
});

/** What each harness says of its session and sub-agent, as its requests were seen. */
const HEADERS: Record<string, string> = {
  "session-id": "s1",
  "thread-id": "t1",
  "x-client-request-id": "s1",
  "x-codex-window-id": "t1:0",
  "x-codex-parent-thread-id": "t0",
  "x-codex-turn-metadata": JSON.stringify({ request_kind: "turn", turn_id: "x".repeat(900) }),
  "x-openai-subagent": "collab_spawn",
  "x-claude-code-session-id": "c1",
  "x-claude-code-agent-id": "a1",
  session_id: "p1",
  "x-session-affinity": "o1",
  "x-session-id": "o1",
  "x-parent-session-id": "o0",
};

it("every header that names a session, sub-agent, parent or turn is on record, whole, and nothing secret is", async () => {
  const started = await startTestSidecar(await scriptedEngine(RULES));
  const secret = { "x-codex-turn-metadata": '{"remote":"https://me:tok-secret@host/repo"}', cookie: "tok-secret" };
  await (await postChat(started, HELLO, HEADERS)).text();
  await (await postChat(started, HELLO, secret)).text();
  const [first, second] = [...(await started.sealed()).intents.values()];
  expect(first!.headers).toMatchObject(HEADERS);
  expect(second!.headers["x-codex-turn-metadata"]).toBe('{"remote":"https://host/repo"}');
  expect(JSON.stringify(second!.headers)).not.toContain("secret");
});

it("text completions are refused in OpenAI's own error, before a token is spent, and the refusal is on record", async () => {
  const engine = await scriptedEngine(RULES);
  const { sealed, ...started } = await startTestSidecar(engine);
  const openai = new OpenAI({ baseURL: started.url, apiKey: started.key });
  const before = (await engineLog(engine)).length;
  for (const prompt of ["hello", [1, 2, 3]]) {
    await expect(openai.completions.create({ model: "policy", prompt })).rejects.toMatchObject({
      status: 400,
      code: "unsupported",
      type: "invalid_request_error",
      message: expect.stringContaining("/v1/chat/completions"),
    });
  }
  const wrongKey = new OpenAI({ baseURL: started.url, apiKey: "another" });
  await expect(wrongKey.completions.create({ model: "policy", prompt: "hello" })).rejects.toMatchObject({
    status: 401,
  });
  expect((await engineLog(engine)).length).toBe(before);
  const log = await sealed();
  expect([...log.intents.values()].map((intent) => intent.dialect)).toEqual(["completions", "completions"]);
  expect(log.uncaptured).toMatchObject(
    [0, 1].map(() => ({ reason: "refused_unsupported", status: 400, lost_tokens: false })),
  );
});
