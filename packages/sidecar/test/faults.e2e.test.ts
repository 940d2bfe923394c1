import { describe, expect, it } from "vitest";
import {
  engineOn,
  engineTest,
  postChat,
  readEvents,
  scriptedEngine,
  serverBefore,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three four five six seven" } }];
const CHAT = { path: "/v1/chat/completions", match: "hello" };
const HELLO = { messages: [user("hello")] };

/** The text of an answer, from a stream or a body; "" when there is none. */
function contentOf(text: string): string {
  const events = text.startsWith("data:") ? text.split("\n\n").map((event) => event.slice("data: ".length)) : [text];
  return events
    .filter((event) => event.startsWith("{"))
    .map(
      (event) => JSON.parse(event) as { choices?: { delta?: { content?: string }; message?: { content?: string } }[] },
    )
    .map(({ choices }) => choices?.[0]?.delta?.content ?? choices?.[0]?.message?.content ?? "")
    .join("");
}

type ErrorBody = { error: { message: string; code: string | null; type: string } };

async function start(fault: Record<string, unknown> | null, times = 1, options = {}) {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine, options);
  if (fault !== null) await engineTest(engine, "faults", { times, on: CHAT, fault });
  return { engine, ...started };
}

describe("a failure before the first byte", () => {
  it.each([429, 500, 502, 503])(
    "with status %i is asked again inside, and the harness never sees it",
    async (status) => {
      const started = await start({ kind: "status", status, retryAfter: "0" });
      const response = await postChat(started, HELLO);
      expect(response.status).toBe(200);
      await response.text();
      const log = await started.sealed();
      expect(turnsOf(log)).toHaveLength(1);
      expect(log.uncaptured).toMatchObject([{ reason: "engine_refused", status, lost_tokens: false }]);
      expect(log.manifest?.status).toBe("complete");
    },
  );

  it("that lasts is passed on as retryable, in the envelope of the dialect", async () => {
    const started = await start({ kind: "status", status: 503, retryAfter: "120" }, 10);
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(503);
    expect(response.headers.get("x-should-retry")).toBe("true");
    expect(response.headers.get("retry-after")).toBe("120");
    expect(((await response.json()) as ErrorBody).error.type).toBe("server_error");
  });

  it.each([400, 404, 422])(
    "with status %i is deterministic: passed on once, never marked retryable",
    async (status) => {
      const started = await start(
        { kind: "status", status, body: { error: { message: "no\u001b[31m", type: "BadRequestError", code: status } } },
        10,
      );
      const response = await postChat(started, { ...HELLO, stream: true });
      expect(response.status).toBe(status === 422 ? 400 : status);
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(((await response.json()) as ErrorBody).error.message).toBe("no [31m");
      expect((await started.sealed()).uncaptured).toHaveLength(1);
    },
  );

  it.each([false, true])(
    "as an abort is asked again, the partial ids are on record, the harness sees no abort (stream: %s)",
    async (stream) => {
      const started = await start({ kind: "abort", afterTokens: 0 });
      const response = await postChat(started, { ...HELLO, stream });
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).not.toContain("abort");
      expect(contentOf(text)).toContain("seven");
      const turns = turnsOf(await started.sealed());
      expect(turns.at(-1)!.record.defects).toEqual([]);
    },
  );

  it("as an abort with some ids, not streamed, leaves an aborted turn beside the whole one", async () => {
    const started = await start({ kind: "abort", afterTokens: 3 });
    expect((await postChat(started, HELLO)).status).toBe(200);
    const turns = turnsOf(await started.sealed());
    expect(turns.map((turn) => turn.record.finish_reason)).toEqual(["abort", "stop"]);
    expect(turns[0]!.sampledIds).toHaveLength(3);
    expect(turns[0]!.record.defects).toContain("aborted");
    expect(turns[1]!.record.decision.kind).not.toBe("append");
  });
});

describe("a failure after the first delta", () => {
  it.each([
    [{ kind: "abort", afterTokens: 3 }, "abort", "aborted"],
    [{ kind: "cut_stream", afterTokens: 3, how: "rst" }, "unknown", "stream_cut"],
    [{ kind: "cut_stream", afterTokens: 3, how: "end" }, "unknown", "stream_cut"],
    [{ kind: "error_event", afterTokens: 3 }, "error", "engine_error"],
    [{ kind: "bad_json", afterTokens: 3 }, "unknown", "unparsed_chunk"],
  ])("(%j) ends in the dialect's in-stream error and a turn that never trains", async (fault, finish, defect) => {
    const started = await start(fault);
    const response = await postChat(started, { ...HELLO, stream: true });
    expect(response.status).toBe(200);
    const events: string[] = [];
    for await (const event of readEvents(response)) events.push(event);
    expect(events.join("\n")).not.toMatch(/"finish_reason":"/);
    expect(events.at(-1)).toBe("data: [DONE]");
    expect((JSON.parse(events.at(-2)!.slice("data: ".length)) as ErrorBody).error.message).toBeTruthy();
    const log = await started.sealed();
    const [turn] = turnsOf(log);
    expect(turn!.record.finish_reason).toBe(finish);
    expect(turn!.record.defects).toContain(defect);
    expect(turn!.sampledIds.length).toBeGreaterThanOrEqual(3);
    expect(turn!.record.message.content).toMatch(/^one/);
  });
});

describe("a reply that is no whole evidence", () => {
  it.each([
    [{ kind: "wrong_usage", completionTokens: 1 }, "completion_count_disagrees"],
    [{ kind: "wrong_usage", completionTokens: 0, promptTokens: 2 }, "prompt_count_disagrees"],
    [{ kind: "short_logprobs" }, "ids_logprobs_disagree"],
    [{ kind: "missing_logprobs" }, "logprobs_missing"],
    [{ kind: "nan_logprobs", as: "null" }, "logprob_not_finite"],
    [{ kind: "nan_logprobs", as: "literal" }, "logprob_not_finite"],
    [{ kind: "nan_logprobs", as: "floor" }, "logprob_not_finite"],
  ])("(%j) is answered and recorded with its defect", async (fault, defect) => {
    for (const stream of [false, true]) {
      const started = await start(fault);
      const response = await postChat(started, { ...HELLO, stream });
      expect(response.status).toBe(200);
      expect(contentOf(await response.text())).toContain("seven");
      const [turn] = turnsOf(await started.sealed());
      expect(turn!.record.defects).toContain(defect);
    }
  });

  it.each([{ kind: "missing_ids" }, { kind: "missing_prompt_ids" }])(
    "(%j) is withheld: a clear error, not retryable, an uncaptured record",
    async (fault) => {
      const started = await start(fault);
      const response = await postChat(started, HELLO);
      expect(response.status).toBe(503);
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(contentOf(await response.text())).toBe("");
      const log = await started.sealed();
      expect(turnsOf(log)).toEqual([]);
      expect(log.uncaptured).toMatchObject([{ lost_tokens: true }]);
      expect(log.manifest?.status).not.toBe("complete");
    },
  );

  it("is given out flagged where the user chose so", async () => {
    const started = await start({ kind: "missing_ids" }, 1, { onUncaptured: "flag" });
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-tito-uncaptured")).toBe("sampled_ids_missing");
    expect(contentOf(await response.text())).toContain("seven");
    expect((await started.sealed()).manifest?.status).not.toBe("complete");
  });

  it.each([
    [{ kind: "html_200" }, true],
    [{ kind: "empty_200" }, false],
    [{ kind: "bad_json", afterTokens: 0 }, true],
  ])("(%j, stream: %s) is a retryable error after being asked again, and the sidecar lives", async (fault, stream) => {
    const started = await start(fault, 5);
    const text = await (await postChat(started, { ...HELLO, stream })).text();
    expect(text).toContain('"error"');
    expect(text).not.toContain("finish_reason");
    expect(contentOf(await (await postChat(started, HELLO)).text())).toContain("seven");
  });
});

describe("weight versions", () => {
  it("are stored as spans, also when they change between calls and inside one", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await engineTest(engine, "weight_version", { version: "step-1" });
    await (await postChat(started, HELLO)).text();
    await engineTest(engine, "weight_version", { version: "step-2" });
    await (await postChat(started, { ...HELLO, stream: true })).text();
    const turns = turnsOf(await started.sealed());
    expect(turns.map((turn) => turn.record.weight_versions)).toEqual(
      ["step-1", "step-2"].map((version) => [{ version, start: 0, end: turns[0]!.sampledIds.length }]),
    );
  });
});

describe("an engine behind keep-alive connections", () => {
  it("may be restarted while they are idle: no call fails", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await (await postChat(started, HELLO)).text();
    await engine.close();
    await engineOn(engine.script, { port: engine.port });
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(200);
    await response.text();
    expect(turnsOf(await started.sealed())).toHaveLength(2);
  });

  it("that is down is a retryable error within its bounds", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    await engine.close();
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(503);
    expect(response.headers.get("x-should-retry")).toBe("true");
    expect(((await response.json()) as ErrorBody).error.message).toContain("did not answer");
  });
});

describe("a redirect", () => {
  it("is an error and is not followed: the destination is frozen", async () => {
    const canary = await serverBefore({ url: "" }, (_request, response) => {
      response.end();
      return true;
    });
    const engine = await scriptedEngine(RULES);
    let redirecting = false;
    const front = await serverBefore(engine, (_request, response) => {
      if (redirecting) response.writeHead(307, { location: `${canary.url}/steal` }).end();
      return redirecting;
    });
    const started = await startTestSidecar(front);
    redirecting = true;
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(500);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(canary.requests).toHaveLength(0);
  });
});
