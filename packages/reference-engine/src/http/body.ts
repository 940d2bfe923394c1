import type { IncomingMessage } from "node:http";
import { ApiError } from "../errors.js";

const BODY_BYTES_MAX = 64 * 1024 * 1024;

/**
 * The request's whole body as text; no body is the empty text. Read from the socket's own message: a body limit on fetch's `Request` has to build
 * a second one, which fails beside the adapter's own wherever there is no content length. Throws 413; what is too much is read to its end and dropped.
 */
export async function readBodyText(incoming: IncomingMessage): Promise<string> {
  if (Number(incoming.headers["content-length"] ?? 0) > BODY_BYTES_MAX) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > BODY_BYTES_MAX) reject(tooLarge());
      else chunks.push(chunk);
    });
    incoming.on("end", resolve);
    incoming.on("error", reject);
  });
  return Buffer.concat(chunks).toString("utf8");
}

function tooLarge(): ApiError {
  return new ApiError(413, "BadRequestError", `the request body is larger than ${BODY_BYTES_MAX} bytes`);
}
