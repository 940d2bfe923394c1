import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { openUpstream, type Upstream, type UpstreamResponse } from "../../src/sample/upstream.js";

const open: { server: Server; upstream: Upstream }[] = [];
afterEach(() => {
  for (const { server, upstream } of open.splice(0)) {
    upstream.close();
    server.closeAllConnections();
    server.close();
  }
});

/** An engine's reply, to be written by the test, and the same reply as it is read. */
async function reply(): Promise<{ engine: ServerResponse; response: UpstreamResponse }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstream = openUpstream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null);
  open.push({ server, upstream });
  const asked = once(server, "request");
  const answered = upstream.send({ method: "GET", path: "/" });
  const engine = (await asked)[1] as ServerResponse;
  engine.flushHeaders();
  return { engine, response: await answered };
}

it("hands a reply on piece by piece, each when the one before is dealt with", async () => {
  const { engine, response } = await reply();
  const seen: string[] = [];
  let busy = false;
  const read = response.read(async (piece) => {
    expect(busy).toBe(false);
    busy = true;
    await new Promise(setImmediate);
    seen.push(Buffer.from(piece).toString());
    busy = false;
    if (seen.join("").length < 3) engine.write(String(seen.length));
    else engine.end("!");
    return true;
  });
  engine.write("0");
  await read;
  expect(seen.join("")).toBe("012!");
});

it("is not at its end before the last piece is dealt with, also where head, body and end come at once", async () => {
  const server = createServer((_request, response) => void response.end("all of it"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstream = openUpstream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, null);
  open.push({ server, upstream });
  const response = await upstream.send({ method: "GET", path: "/" });
  const seen: string[] = [];
  await response.read(async (piece) => {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    seen.push(Buffer.from(piece).toString());
    return true;
  });
  expect(seen.join("")).toBe("all of it");
});

it("ends a reply that breaks off behind what was handed on", async () => {
  const { engine, response } = await reply();
  const steps: string[] = [];
  const read = response.read(async () => {
    steps.push("taken");
    engine.destroy();
    await once(engine, "close");
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    steps.push("dealt with");
    return true;
  });
  engine.write("a");
  await expect(read).rejects.toMatchObject({ code: "upstream_unavailable" });
  expect(steps).toEqual(["taken", "dealt with"]);
});

it("reads no further when it is told to stop, and fails as the reader fails", async () => {
  const stopped = await reply();
  const read = stopped.response.read(async () => false);
  stopped.engine.write("a");
  await read;
  await once(stopped.engine, "close");

  const failed = await reply();
  const failing = failed.response.read(async () => {
    throw new Error("the reader");
  });
  failed.engine.write("a");
  await expect(failing).rejects.toThrow("the reader");
  await once(failed.engine, "close");
});

it("gives a whole reply as text, characters across pieces included", async () => {
  const { engine, response } = await reply();
  const text = response.text();
  const bytes = Buffer.from("é€😀");
  for (const byte of bytes) engine.write(Buffer.of(byte));
  engine.end();
  expect(await text).toBe("é€😀");
});
