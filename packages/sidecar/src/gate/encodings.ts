/** Compressed request bodies (RFC 9110 §8.4): what can be read, and how far a body may grow while it is inflated. */
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { TitoError } from "@tito/format";

type Inflate = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

const inflateZlib = promisify(zlib.inflate) as Inflate;
const inflateRaw = promisify(zlib.inflateRaw) as Inflate;

/** Zstandard came with Node 22.15. */
const zstd = (zlib as { zstdDecompress?: typeof zlib.gunzip }).zstdDecompress;

const INFLATE: ReadonlyMap<string, Inflate> = new Map<string, Inflate>([
  ["gzip", promisify(zlib.gunzip) as Inflate],
  ["x-gzip", promisify(zlib.gunzip) as Inflate],
  ["deflate", inflateEither],
  ["br", promisify(zlib.brotliDecompress) as Inflate],
  ...(zstd === undefined ? [] : [["zstd", promisify(zstd) as Inflate] as const]),
]);
/** A body that is encoded more often than this is made to hurt. */
const ENCODINGS_MAX = 4;

/**
 * The encodings of a body, in the order in which they were applied. `header`: Content-Encoding, several of them joined by commas.
 * @throws TitoError `unsupported_media_type` that names the one that is not known, and those that are.
 */
export function bodyEncodings(header: string | undefined): string[] {
  const names = (header ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const hint = `send plain JSON, or one of ${[...INFLATE.keys()].join(", ")}`;
  const unknown = names.find((name) => !INFLATE.has(name));
  if (unknown !== undefined)
    throw new TitoError(
      "unsupported_media_type",
      `content-encoding ${JSON.stringify(unknown.slice(0, 40))} can not be read`,
      { hint },
    );
  if (names.length > ENCODINGS_MAX)
    throw new TitoError("unsupported_media_type", `${names.length} content encodings on one body are not read`, {
      hint,
    });
  return names;
}

/**
 * The plain body. No step of it may be larger than `bytesMax`: a few bytes could be any number of plain ones.
 * @throws TitoError `body_too_large`, or `bad_request` for bytes that are not what the encoding says.
 */
export async function decodeBody(
  bytes: Uint8Array,
  encodings: readonly string[],
  bytesMax: number,
): Promise<Uint8Array> {
  let plain = bytes;
  for (const name of encodings.toReversed()) {
    try {
      plain = await INFLATE.get(name)!(plain, { maxOutputLength: bytesMax });
    } catch (cause) {
      throw refusal(name, bytesMax, cause);
    }
  }
  return plain;
}

/** `deflate` means the zlib format; some clients send the bare stream. */
async function inflateEither(bytes: Uint8Array, options: { maxOutputLength: number }): Promise<Buffer> {
  // The first byte of the zlib format says deflate in its lower half, and the first two are a multiple of 31 (RFC 1950).
  const isZlib = bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && ((bytes[0]! << 8) | bytes[1]!) % 31 === 0;
  return (isZlib ? inflateZlib : inflateRaw)(bytes, options);
}

function refusal(name: string, bytesMax: number, cause: unknown): TitoError {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === "ERR_BUFFER_TOO_LARGE") return tooLarge(bytesMax, cause);
  return new TitoError("bad_request", `the request body is not whole ${name}: ${code ?? String(cause)}`, { cause });
}

export function tooLarge(bytesMax: number, cause?: unknown): TitoError {
  return new TitoError("body_too_large", `the request body is larger than ${bytesMax} bytes`, {
    cause,
    hint: "shorten the conversation",
  });
}
