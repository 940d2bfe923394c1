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
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const take = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes <= bytesMax) {
        chunks.push(chunk);
        return;
      }
      // The request is not destroyed: its socket still has to carry the refusal.
      incoming.off("data", take).pause();
      reject(tooLarge());
    };
    const brokenOff = (cause?: Error): void =>
      reject(new TitoError("bad_request", "the request body broke off", { cause }));
    if (incoming.destroyed) brokenOff();
    incoming.on("data", take);
    incoming.on("error", brokenOff);
    incoming.once("close", brokenOff);
    incoming.once("end", () => {
      incoming.off("close", brokenOff);
      resolve(Buffer.concat(chunks, bytes));
    });
  });
}
