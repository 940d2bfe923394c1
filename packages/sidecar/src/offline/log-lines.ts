/** A log as lines that are found again by their place: the file is read twice, and its text is never held as a whole. */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";
import { TitoError } from "@tito/format";

/** A longer line is no record of one call. */
const LINE_BYTES_MAX = 128 * 1024 * 1024;

/** Bytes `[offset, offset + bytes)` of a file, line `line` from 1. */
export interface LinePlace {
  line: number;
  offset: number;
  bytes: number;
}

/** Which log an import was made from. */
export interface LogIdentity {
  name: string;
  bytes: number;
  sha256: string;
}

const NEWLINE = 0x0a;

/**
 * Calls `onLine` for every line, in order, blank ones left out. A file whose name ends in `.json` is one record, however many lines it has.
 * @throws TitoError `not_found`, or `format_invalid` for a line that is too long.
 */
export async function scanLog(
  file: string,
  onLine: (place: LinePlace, bytes: Uint8Array) => void,
): Promise<LogIdentity> {
  const whole = file.endsWith(".json");
  const hash = createHash("sha256");
  let pieces: Buffer[] = [];
  let held = 0;
  let line = 1;
  let offset = 0;
  let total = 0;
  const take = (): void => {
    const bytes = Buffer.concat(pieces);
    if (!isBlank(bytes)) onLine({ line, offset, bytes: bytes.length }, bytes);
    offset += bytes.length + 1;
    line += 1;
    pieces = [];
    held = 0;
  };
  const hold = (piece: Buffer): void => {
    held += piece.length;
    if (held > LINE_BYTES_MAX) {
      throw new TitoError("format_invalid", `${file}:${line}: longer than ${LINE_BYTES_MAX} bytes`);
    }
    pieces.push(piece);
  };
  for await (const chunk of openLog(file)) {
    const buffer = chunk as Buffer;
    hash.update(buffer);
    total += buffer.length;
    let start = 0;
    if (!whole) {
      for (let end = buffer.indexOf(NEWLINE); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
        hold(buffer.subarray(start, end));
        take();
        start = end + 1;
      }
    }
    if (start < buffer.length) hold(buffer.subarray(start));
  }
  if (held > 0) take();
  return { name: basename(file), bytes: total, sha256: hash.digest("hex") };
}

function openLog(file: string): AsyncIterable<unknown> {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new TitoError("not_found", `${file} is not a file that can be read`);
  }
  return createReadStream(file, { highWaterMark: 1024 * 1024 });
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d);
}

/** Reads lines again. @throws TitoError `io` when the file got shorter meanwhile. */
export class LineReader {
  private readonly fd: number;

  constructor(private readonly file: string) {
    this.fd = openSync(file, "r");
  }

  read(place: LinePlace): Uint8Array {
    const bytes = Buffer.alloc(place.bytes);
    let got = 0;
    while (got < bytes.length) {
      const more = readSync(this.fd, bytes, got, bytes.length - got, place.offset + got);
      if (more === 0) throw new TitoError("io", `${this.file} became shorter while it was read`);
      got += more;
    }
    return bytes;
  }

  close(): void {
    closeSync(this.fd);
  }
}
