/** Reads a request body, counting bytes as they come: a Content-Length is only a promise. */
import type { IncomingMessage } from "node:http";
import { TitoError } from "@tito/format";

/** Far above any context window in JSON; a body is kept in memory while its call lives. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** @throws TitoError `body_too_large` or `bad_request` (the sender broke off). */
export async function readBody(incoming: IncomingMessage, bytesMax: number = BODY_BYTES_MAX): Promise<Uint8Array> {
  const tooLarge = (): TitoError =>
    new TitoError("body_too_large", `the request body is larger than ${bytesMax} bytes`, {
      hint: "shorten the conversation",
    });
  if (Number(incoming.headers["content-length"] ?? 0) > bytesMax) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop must not destroy the request: its socket still has to carry the refusal.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      const buffer = chunk as Buffer;
      bytes += buffer.length;
      if (bytes > bytesMax) throw tooLarge();
      chunks.push(buffer);
    }
  } catch (error) {
    if (TitoError.is(error)) throw error;
    throw new TitoError("bad_request", "the request body broke off", { cause: error });
  }
  return Buffer.concat(chunks, bytes);
}
