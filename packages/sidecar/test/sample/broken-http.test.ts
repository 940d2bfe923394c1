/** An engine, or a proxy before it, that breaks HTTP: the error names the engine and the cause (O.101); and no request goes out twice unseen (O.102). */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { TitoError } from "@tito/format";
import { afterEach, describe, expect, it } from "vitest";
import { openUpstream, StaleConnection, type Upstream } from "../../src/sample/upstream.js";

const open: { server: Server; upstream: Upstream; sockets: Set<Socket> }[] = [];
afterEach(() => {
  for (const { server, upstream, sockets } of open.splice(0)) {
    upstream.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

/** A server of bytes: `answer` gets each connection with each whole request that comes on it. */
async function bytesServer(answer: (socket: Socket, request: string, nth: number) => void): Promise<{
  upstream: Upstream;
  host: string;
  requests: string[];
}> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      requests.push(bytes.toString());
      answer(socket, bytes.toString(), requests.length);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const upstream = openUpstream(`http://127.0.0.1:${port}`, null);
  open.push({ server, upstream, sockets });
  return { upstream, host: `127.0.0.1:${port}`, requests };
}

const BODY = '{"a":1}';
const WHOLE = `HTTP/1.1 200 OK\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
const chunked = (headers: string, body: string) => `HTTP/1.1 200 OK\r\n${headers}\r\n\r\n${body}`;
const CHUNKS = `7\r\n${BODY}\r\n0\r\n\r\n`;
const POST = { method: "POST", path: "/v1/chat/completions", body: "{}" } as const;

describe("an engine that breaks HTTP", () => {
  it.each([
    [
      "Transfer-Encoding twice",
      chunked("transfer-encoding: chunked\r\ntransfer-encoding: chunked", CHUNKS),
      /Transfer-Encoding 2 times \(chunked, chunked\)/,
    ],
    [
      "Transfer-Encoding twice in one line",
      chunked("transfer-encoding: chunked, chunked", CHUNKS),
      /Transfer-Encoding 2 times \(chunked, chunked\)/,
    ],
    ["a compressed transfer", chunked("transfer-encoding: gzip, chunked", CHUNKS), /is encoded \(gzip, chunked\)/],
    [
      "Content-Length and Transfer-Encoding",
      chunked("content-length: 7\r\ntransfer-encoding: chunked", CHUNKS),
      /Transfer-Encoding can't be present with Content-Length/,
    ],
    [
      "Transfer-Encoding and Content-Length",
      chunked("transfer-encoding: chunked\r\ncontent-length: 7", CHUNKS),
      /Content-Length can't be present with Transfer-Encoding/,
    ],
    ["two lengths", chunked("content-length: 7\r\ncontent-length: 8", BODY), /Duplicate Content-Length/],
    ["a length in words", chunked("content-length: seven", BODY), /Invalid character in Content-Length/],
    ["a chunk without a size", chunked("transfer-encoding: chunked", `zz\r\n${CHUNKS}`), /chunk size/],
    ["a body that is not chunked", chunked("transfer-encoding: chunked", BODY), /chunk size/],
    ["a chunk that is longer than it says", chunked("transfer-encoding: chunked", `3\r\n${BODY}\r\n`), /chunk data/],
    [
      "a second chunk without a size",
      chunked("transfer-encoding: chunked", `7\r\n${BODY}\r\nqq\r\n\r\n`),
      /chunk size/,
    ],
    ["no HTTP at all", "garbage\r\n\r\n", /Expected HTTP/],
    ["TLS", String.fromCharCode(21, 3, 1, 0, 2, 2, 70), /Expected HTTP/],
    ["a header without a colon", chunked("nonsense\r\ncontent-length: 7", BODY), /Invalid header token/],
    ["a status that is none", "HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n", /Invalid response status/],
  ])("(%s) is named, with what it did (O.101)", async (_words, bytes, cause) => {
    const { upstream, host } = await bytesServer((socket) => socket.write(bytes, "latin1"));
    const error = await upstream
      .send(POST)
      .then(
        (response) => response.text(),
        (failure: unknown) => failure as TitoError,
      )
      .catch((failure: unknown) => failure);
    expect(TitoError.is(error)).toBe(true);
    expect((error as TitoError).message).toContain(`the engine at ${host}`);
    expect((error as TitoError).message).toMatch(cause);
    expect((error as TitoError).hint).toContain("between the sidecar and the engine");
  });

  it("that says identity, or chunked once, is read (O.101)", async () => {
    const { upstream } = await bytesServer((socket) => socket.write(chunked("transfer-encoding: Chunked", CHUNKS)));
    expect(await (await upstream.send(POST)).text()).toBe(BODY);
  });
});

describe("a connection that was kept open and that the engine closes", () => {
  /** Answers the first request, and closes the connection on the second as one that had closed it already. */
  const closesOnSecond = () =>
    bytesServer((socket, _request, nth) => {
      if (nth === 2) socket.resetAndDestroy();
      else socket.write(WHOLE);
    });

  it("while a call is on its way ends the call, which is not sent again from here (O.102)", async () => {
    const { upstream, requests, host } = await closesOnSecond();
    await (await upstream.send(POST)).text();
    const failure = (await upstream.send(POST).catch((error: unknown) => error)) as TitoError;
    expect(failure).toMatchObject({ code: "upstream_unavailable", cause: expect.any(StaleConnection) });
    expect(failure.message).toContain(`the engine at ${host} closed a connection`);
    expect(requests).toHaveLength(2);
    expect(await (await upstream.send(POST)).text()).toBe(BODY);
  });

  it.each([
    ["a question without a body", { method: "GET", path: "/version" } as const],
    ["what samples nothing", { ...POST, path: "/tokenize", repeatable: true }],
  ])("is opened again for %s (O.102)", async (_words, request) => {
    const { upstream, requests } = await closesOnSecond();
    await (await upstream.send(request)).text();
    expect(await (await upstream.send(request)).text()).toBe(BODY);
    expect(requests).toHaveLength(3);
  });

  it("in number are opened again at once: the next call gets a fresh one (O.102)", async () => {
    let restarted = false;
    const seen = new Set<Socket>();
    const { upstream } = await bytesServer((socket) => {
      if (restarted && seen.has(socket)) return void socket.resetAndDestroy();
      if (restarted) return void socket.write(WHOLE);
      seen.add(socket);
      // Each has one of its own: nobody is answered before all have asked.
      if (seen.size === 6) for (const one of seen) one.write(WHOLE);
    });
    const many = await Promise.all(Array.from({ length: 6 }, () => upstream.send(POST)));
    await Promise.all(many.map((response) => response.text()));
    expect(seen.size).toBe(6);
    restarted = true;
    await expect(upstream.send(POST)).rejects.toMatchObject({ code: "upstream_unavailable" });
    expect(await (await upstream.send(POST)).text()).toBe(BODY);
  });
});
