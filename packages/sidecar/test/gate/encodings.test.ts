import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { readBody } from "../../src/gate/body.js";

const TEXT = Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "é ".repeat(500) }] }));
const ENCODERS: Record<string, (bytes: Uint8Array) => Buffer> = {
  gzip: zlib.gzipSync,
  "x-gzip": zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
};
const zstd = (zlib as { zstdCompressSync?: (bytes: Uint8Array) => Buffer }).zstdCompressSync;
if (zstd === undefined) console.warn("SKIPPED zstd: this Node has none");
else ENCODERS.zstd = zstd;

function read(encoding: string, bytes: Uint8Array, bytesMax?: number): Promise<Uint8Array> {
  const headers = { "content-encoding": encoding };
  const incoming = Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage;
  incoming.end(bytes);
  return readBody(incoming, bytesMax);
}

const text = async (encoding: string, bytes: Uint8Array): Promise<string> =>
  Buffer.from(await read(encoding, bytes)).toString("utf8");

describe("a compressed request body (O.118)", () => {
  it.each(Object.keys(ENCODERS))("(%s) is read, whatever the letters of its name", async (name) => {
    const bytes = ENCODERS[name]!(TEXT);
    for (const spelled of [name, name.toUpperCase(), ` ${name} `, `identity, ${name}`, `${name},`])
      expect(await text(spelled, bytes)).toBe(TEXT.toString("utf8"));
  });

  it("in several encodings is read in the order of its list", async () => {
    const twice = zlib.brotliCompressSync(zlib.gzipSync(TEXT));
    expect(await text("gzip, br", twice)).toBe(TEXT.toString("utf8"));
    await expect(read("br, gzip", twice)).rejects.toMatchObject({ code: "bad_request" });
  });

  it("that calls itself deflate may be a bare stream, and may be of several members where it is gzip", async () => {
    expect(await text("deflate", zlib.deflateRawSync(TEXT))).toBe(TEXT.toString("utf8"));
    const members = Buffer.concat([zlib.gzipSync(TEXT.subarray(0, 99)), zlib.gzipSync(TEXT.subarray(99))]);
    expect(await text("gzip", members)).toBe(TEXT.toString("utf8"));
  });

  it.each(Object.keys(ENCODERS))("(%s) is refused when it inflates beyond the limit, at any step", async (name) => {
    const limit = 100_000;
    const zeros = ENCODERS[name]!(Buffer.alloc(limit + 1));
    expect(zeros.length).toBeLessThan(1000);
    expect(await read(name, ENCODERS[name]!(Buffer.alloc(limit)), limit)).toHaveLength(limit);
    await expect(read(name, zeros, limit)).rejects.toMatchObject({ code: "body_too_large" });
    await expect(read(`${name}, gzip`, zlib.gzipSync(zeros), limit)).rejects.toMatchObject({ code: "body_too_large" });
  });

  it.each(Object.keys(ENCODERS))("(%s) is refused when it is cut, or is something else", async (name) => {
    const whole = ENCODERS[name]!(TEXT);
    for (const bytes of [whole.subarray(0, -4), whole.subarray(0, 3), TEXT, Buffer.alloc(0)])
      await expect(read(name, bytes)).rejects.toMatchObject({
        code: "bad_request",
        message: expect.stringContaining(`not whole ${name}`),
      });
  });

  it("in an encoding that is not known is refused by its name, with those that are", async () => {
    await expect(read("compress", TEXT)).rejects.toMatchObject({
      code: "unsupported_media_type",
      message: 'content-encoding "compress" can not be read',
      hint: expect.stringContaining("gzip, x-gzip, deflate, br"),
    });
  });
});
