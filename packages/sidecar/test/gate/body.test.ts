import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { readBody } from "../../src/gate/body.js";

function request(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage;
}

describe("a request body", () => {
  it("is all its pieces, in order", async () => {
    const incoming = request();
    const body = readBody(incoming);
    for (const piece of ["a", "bc", "", "def"]) incoming.write(piece);
    incoming.end("g");
    expect(Buffer.from(await body).toString()).toBe("abcdefg");
    expect((await readBody(request().end() as PassThrough & IncomingMessage)).length).toBe(0);
  });

  it("is refused when it says that it is too large, or turns out to be, and its connection is left alone", async () => {
    await expect(readBody(request({ "content-length": "5" }), 4)).rejects.toMatchObject({ code: "body_too_large" });
    const incoming = request();
    const body = readBody(incoming, 4);
    incoming.write("abc");
    incoming.write("de");
    await expect(body).rejects.toMatchObject({ code: "body_too_large" });
    expect(incoming.destroyed).toBe(false);
  });

  it.each([
    ["before it is read", 0],
    ["while it is read", 1],
  ])("is refused when its sender breaks off %s", async (_when, pieces) => {
    const incoming = request();
    if (pieces === 0) {
      incoming.destroy();
      await new Promise((closed) => incoming.once("close", closed));
    }
    const body = readBody(incoming);
    if (pieces > 0) {
      incoming.write("abc");
      incoming.destroy(new Error("aborted"));
    }
    await expect(body).rejects.toMatchObject({ code: "bad_request", message: "the request body broke off" });
  });
});
