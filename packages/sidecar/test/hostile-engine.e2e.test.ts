import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  postChat,
  readEvents,
  type Started,
  scriptedEngine,
  serverBefore,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const HELLO = { messages: [user("hello")] };
const DEEP = 200_000;

/** A sidecar whose engine answers the next call of a harness by hand, byte for byte, and is itself again behind it. */
async function start(answer: (socket: Socket) => void): Promise<{ started: Started; asked: () => number }> {
  const engine = await scriptedEngine(RULES);
  let armed = false;
  let asked = 0;
  const front = await serverBefore(engine, (request) => {
    if (!armed || request.url !== "/v1/chat/completions") return false;
    asked += 1;
    armed = false;
    request.resume();
    answer(request.socket);
    return true;
  });
  const started = await startTestSidecar(front);
  armed = true;
  return { started, asked: () => asked };
}

const reply = (headers: string, body: string | Buffer) => (socket: Socket) => {
  socket.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${headers}\r\n\r\n`);
  socket.end(body);
};
const sized = (type: string, body: string | Buffer, more = "") =>
  reply(`content-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}${more}`, body);
const json = (body: string) => sized("application/json", body);

const choice = (fields: string) =>
  `{"id":"x","object":"chat.completion","created":1,"model":"policy","prompt_token_ids":[1,2],"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"${fields}}],"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}}`;
const LOGPROBS = `,"logprobs":{"content":[{"logprob":-1},{"logprob":-2}]}`;
const BOMB = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20));

/** The sidecar is as it was: the next call is answered and recorded whole. */
async function unhurt(started: Started): Promise<void> {
  const response = await postChat(started, HELLO);
  expect(response.status).toBe(200);
  expect(await response.text()).toContain("one two three");
}

describe("an engine that is hostile", () => {
  it.each([
    ["gzip", sized("application/json", gzipSync(choice("")), "\r\ncontent-encoding: gzip")],
    [
      "a chain of codings",
      sized("application/json", deflateSync(gzipSync(choice(""))), "\r\ncontent-encoding: gzip, deflate"),
    ],
    ["a bomb", sized("application/json", BOMB, "\r\ncontent-encoding: gzip")],
    ["a gzipped stream", sized("text/event-stream", gzipSync("data: {}\n\n"), "\r\ncontent-encoding: gzip")],
    [
      "gzip as a transfer coding",
      reply(
        "content-type: application/json\r\ntransfer-encoding: gzip, chunked",
        Buffer.concat([Buffer.from("14\r\n"), Buffer.alloc(20), Buffer.from("\r\n0\r\n\r\n")]),
      ),
    ],
  ])(
    "answers with %s, although it was asked for plain bytes: refused by name, never inflated (B5.23)",
    async (_words, answer) => {
      const { started, asked } = await start(answer);
      const memory = process.memoryUsage().arrayBuffers;
      const response = await postChat(started, HELLO);
      expect(response.status).toBe(503);
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await response.text()).toMatch(/is encoded \((gzip|deflate)/);
      expect(process.memoryUsage().arrayBuffers - memory).toBeLessThan(32 * 1024 * 1024);
      expect(asked()).toBe(1);
      await unhurt(started);
      const log = await started.sealed();
      expect(turnsOf(log)).toHaveLength(1);
      expect(log.uncaptured).toMatchObject([{ reason: "unparsed_chunk" }]);
    },
  );

  it.each([
    ["200 with a web page", sized("text/html", "<html>502</html>"), "something that is not JSON"],
    ["200 with nothing", sized("application/json", ""), "something that is not JSON"],
    [
      "a length that is too short",
      // The rest of it lies on a connection that is kept alive, in front of the next reply.
      (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n${choice(LOGPROBS)}`),
      "something that is not JSON",
    ],
    [
      "a length that is too long",
      reply("content-type: application/json\r\ncontent-length: 4000", choice(LOGPROBS)),
      "ended before it was complete",
    ],
    ["JSON that is no object", json("[1,2]"), null],
    ["arrays without end inside each other", json(`${"[".repeat(DEEP)}${"]".repeat(DEEP)}`), null],
    ["an error nested without end", json(`{"error":{"detail":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}}`), null],
  ])("answers with %s: asked again, and the harness sees none of it (B5.23)", async (_words, answer, words) => {
    const { started } = await start(answer);
    await unhurt(started);
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(1);
    expect(log.uncaptured).toHaveLength(1);
    if (words !== null) expect(log.uncaptured[0]!.detail).toContain(words);
    expect(log.manifest?.status).toBe("complete");
  });

  it.each([
    ["one header without end", (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(4_000_000)}`)],
    ["headers without end", (socket: Socket) => socket.write(`HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(500_000)}`)],
    ["no HTTP at all", (socket: Socket) => socket.write("garbage ".repeat(1000))],
  ])("sends %s: taken for an engine that did not answer, and asked again (B5.23)", async (_words, answer) => {
    const { started } = await start(answer);
    await unhurt(started);
    const log = await started.sealed();
    expect(log.uncaptured).toMatchObject([{ reason: "engine_refused", lost_tokens: false }]);
    expect(turnsOf(log)).toHaveLength(1);
  });

  it("refuses with a detail nested without end: a refusal like any other (B5.23)", async () => {
    const body = `{"detail":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}`;
    const { started } = await start((socket) => {
      socket.write(
        `HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { message: string } }).error.message.length).toBeLessThanOrEqual(2000);
    await unhurt(started);
  });

  it.each([
    ["ids that are no numbers", `,"token_ids":["5",null]${LOGPROBS}`],
    ["ids that are NaN", `,"token_ids":[NaN,NaN]${LOGPROBS}`],
    ["ids beyond int32", `,"token_ids":[1,99999999999]${LOGPROBS}`],
    ["ids with a fraction", `,"token_ids":[1,1.5]${LOGPROBS}`],
    ["negative ids", `,"token_ids":[-1,1]${LOGPROBS}`],
  ])("tells %s: the answer is withheld, nothing of it is taken for a token (B5.23)", async (_words, fields) => {
    const { started } = await start(json(choice(fields)));
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(503);
    expect(response.headers.get("x-should-retry")).toBe("false");
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(0);
    expect(log.uncaptured).toMatchObject([{ reason: "sampled_ids_missing", lost_tokens: true }]);
    expect(log.manifest?.status).not.toBe("complete");
  });

  it.each([
    ["more ids than log probabilities", `,"token_ids":[5,6,7]${LOGPROBS}`, "ids_logprobs_disagree"],
    ["fewer ids than log probabilities", `,"token_ids":[5]${LOGPROBS}`, "ids_logprobs_disagree"],
    ["ids and no log probabilities", `,"token_ids":[5,6]`, "logprobs_missing"],
    [
      "log probabilities nested without end",
      `,"token_ids":[5,6],"logprobs":{"content":[{"logprob":-1},{"logprob":${"[".repeat(500)}${"]".repeat(500)}}]}`,
      "logprob_not_finite",
    ],
  ])("tells %s: recorded with the defect (B5.23)", async (_words, fields, defect) => {
    const { started } = await start(json(choice(fields)));
    expect((await postChat(started, HELLO)).status).toBe(200);
    const [turn] = turnsOf(await started.sealed());
    expect(turn!.record.defects).toContain(defect);
  });

  it("calls 150,000 tools in one chunk: more than a record takes, so it is withheld, and the process lives (B5.23)", async () => {
    const calls = Array.from(
      { length: 150_000 },
      (_, index) => `{"index":${index},"id":"c${index}","function":{"name":"f","arguments":"{}"}}`,
    );
    const body = `{"id":"x","created":1,"model":"policy","prompt_token_ids":[1,2],"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[${calls.join(",")}]},"finish_reason":"tool_calls","token_ids":[5,6]${LOGPROBS}}],"usage":{"prompt_tokens":2,"completion_tokens":2}}`;
    const { started } = await start(json(body));
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(503);
    expect(await response.text()).toContain("could not be recorded");
    await unhurt(started);
  });

  it("streams without end: cut at the limit of a reply, what was sampled before is on record (B5.23)", async () => {
    const filler = `: ${"y".repeat(4_000_000)}\n`;
    const { started } = await start((socket) => {
      socket.on("error", () => undefined);
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
      socket.write(
        `data: {"id":"x","prompt_token_ids":[1,2],"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[5]${LOGPROBS.replace(',{"logprob":-2}', "")}}]}\n\n`,
      );
      const more = (): void => {
        while (!socket.destroyed && socket.write(filler));
        if (!socket.destroyed) socket.once("drain", more);
      };
      more();
    });
    const events: string[] = [];
    for await (const event of readEvents(await postChat(started, { ...HELLO, stream: true })))
      events.push(event.slice(0, 300));
    expect(events.at(-2)).toContain("is larger than");
    await unhurt(started);
    const [turn] = turnsOf(await started.sealed());
    expect([...turn!.sampledIds]).toEqual([5]);
    expect(turn!.record.defects).toContain("unparsed_chunk");
  });
});

describe("an engine that starts hostile", () => {
  it("with a compressed model list is refused at the start, in one line", async () => {
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(gzipSync("{}"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await expect(startTestSidecar({ url })).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

describe("a harness that is hostile", () => {
  it.each([
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"response_format":@}`],
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"logit_bias":@}`],
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"chat_template_kwargs":@}`],
    [
      "/v1/chat/completions",
      `{"messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f","parameters":@}}]}`,
    ],
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":@}]}`],
    ["/v1/chat/completions", `{"messages":@}`],
    ["/v1/chat/completions", `{"messages":[{"role":"user","content":"hello"}],"unknown":@}`],
    ["/v1/chat/completions", `@`],
    ["/v1/responses", `{"input":@}`],
    ["/v1/responses", `{"input":"hello","text":@}`],
    ["/v1/responses", `{"input":"hello","tools":[{"type":"function","name":"f","parameters":@}]}`],
    ["/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":@}]}`],
    [
      "/v1/messages",
      `{"max_tokens":5,"messages":[{"role":"user","content":"hello"}],"tools":[{"name":"f","input_schema":@}]}`,
    ],
    ["/v1/messages/count_tokens", `{"messages":@}`],
  ])("nests values without end in %s %s: it gets an answer, and the process lives (B5.16)", async (path, template) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    for (const nested of [`${"[".repeat(DEEP)}${"]".repeat(DEEP)}`, `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`]) {
      const response = await fetch(`${started.sidecar.origin}/t/t1${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
        body: template.replace("@", nested),
      });
      expect(response.status).toBeGreaterThanOrEqual(200);
      await response.text();
    }
    await unhurt(started);
    expect((await started.sealed()).lifecycle.map((record) => record.event)).not.toContain("crash");
  });
});
