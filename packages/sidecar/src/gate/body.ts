/** Reads a request body, counting bytes as they come: a Content-Length is only a promise. */
import type { IncomingMessage } from "node:http";
import { TitoError } from "@tito/format";
import { bodyEncodings, decodeBody, tooLarge } from "./encodings.js";

/** Far above any context window in JSON; a body is kept in memory while its call lives. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/**
 * The plain bytes of a body, inflated where it came compressed; the limit holds for both.
 * @throws TitoError `body_too_large`, `bad_request` (the sender broke off, or it is not what its encoding says) or `unsupported_media_type`.
 */
export async function readBody(incoming: IncomingMessage, bytesMax: number = BODY_BYTES_MAX): Promise<Uint8Array> {
  const encodings = bodyEncodings(incoming.headers["content-encoding"]);
  return decodeBody(await readBytes(incoming, bytesMax), encodings, bytesMax);
}

async function readBytes(incoming: IncomingMessage, bytesMax: number): Promise<Uint8Array> {
  if (Number(incoming.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(bytesMax);
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
      reject(tooLarge(bytesMax));
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
