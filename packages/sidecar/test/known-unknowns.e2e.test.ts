/** What an engine does not say, or says in a way that cannot be, is a defect of the recorded turn, and the harness still has its answer. */
import { describe, expect, it } from "vitest";
import { postChat, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";

const HELLO = { messages: [user("hello")], stream: true };
const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];

interface Piece {
  ids: number[];
  logprob?: number | string;
  finish?: unknown;
}

/** A stream in vLLM's shape. `usage`: whether its counts come at the end. */
function stream(pieces: readonly Piece[], usage: { completion: number } | null): string {
  const chunk = (fields: object) => ({
    id: "x",
    object: "chat.completion.chunk",
    created: 1,
    model: "policy",
    ...fields,
  });
  const events = [
    chunk({
      prompt_token_ids: [1, 2],
      choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
    }),
    ...pieces.map(({ ids, logprob = -0.5, finish = null }) =>
      chunk({
        choices: [
          {
            index: 0,
            delta: { content: "word " },
            token_ids: ids,
            logprobs: { content: ids.map(() => ({ token: "x", logprob })) },
            finish_reason: finish,
          },
        ],
      }),
    ),
    ...(usage === null
      ? []
      : [chunk({ choices: [], usage: { prompt_tokens: 2, completion_tokens: usage.completion, total_tokens: 9 } })]),
  ];
  const lines = events.map((event) => `data: ${JSON.stringify(event).replaceAll('"INFINITY"', "Infinity")}\n\n`);
  return `${lines.join("")}data: [DONE]\n\n`;
}

async function turnFrom(body: string) {
  const engine = await scriptedEngine(RULES);
  let armed = false;
  const front = await serverBefore(engine, (request) => {
    if (!armed || request.url !== "/v1/chat/completions") return false;
    armed = false;
    request.resume();
    request.socket.end(
      `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return true;
  });
  const started = await startTestSidecar(front);
  armed = true;
  const response = await postChat(started, HELLO);
  expect(response.status).toBe(200);
  await response.text();
  const [turn] = turnsOf(await started.sealed());
  return turn!.record;
}

describe("a stream", () => {
  it("that lost a piece and its counts has a hole that nobody can place (O.91)", async () => {
    const record = await turnFrom(stream([{ ids: [5] }, { ids: [7], finish: "stop" }], null));
    expect([...record.sampled_ids]).toEqual([5, 7]);
    expect(record).toMatchObject({ defects: ["usage_lost"], usage: { completion_tokens: null } });
  });

  it("that lost a piece and told its counts disagrees with them (O.91)", async () => {
    const record = await turnFrom(stream([{ ids: [5] }, { ids: [7], finish: "stop" }], { completion: 3 }));
    expect(record.defects).toEqual(["completion_count_disagrees"]);
  });

  it.each(["cancelled", "", "content_filter"])("that ends as %j ended in no known way (O.93)", async (finish) => {
    const record = await turnFrom(stream([{ ids: [5], finish }], { completion: 1 }));
    expect(record).toMatchObject({ finish_reason: "unknown", defects: ["finish_unknown"] });
  });

  it.each([3.5, "INFINITY"])("whose log probability is %s says something that cannot be (O.92)", async (logprob) => {
    const record = await turnFrom(stream([{ ids: [5], logprob, finish: "stop" }], { completion: 1 }));
    expect(record.defects).toContain("logprob_positive");
  });
});
