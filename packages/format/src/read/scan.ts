/**
 * Walks one file frame by frame: header CRC, payload CRC, sequence, chain. Memory is one window, whatever the file's size.
 * What is wrong is a gap item among the frames, never an exception, except in `strict` mode.
 */
import fs from "node:fs";
import { closeQuietly, type Disk, errorCode, isRegular, nodeDisk, readFully, systemMessage } from "../disk/disk.js";
import { cannotOpen, notRegular } from "../disk/read-small.js";
import { crc32c } from "../frame/crc32c.js";
import {
  CHAIN_START,
  decodeFrameHeader,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  findFrameStart,
  hasFrameShape,
  isChainDigest,
} from "../frame/frame.js";
import { TitoError } from "../record/errors.js";

/**
 * `strict`: the first irregularity, a torn tail included, throws `damaged`.
 * `tail`: the walk ends at the first irregularity. `salvage`: it goes on with the next frame that can be found.
 */
export type ReadMode = "strict" | "tail" | "salvage";

/**
 * `torn_tail`: the file ends inside a frame, as a killed writer leaves it. The rest is damage:
 * `bad_header`, `bad_payload`: a CRC does not hold. `bad_chain`: both hold and the chain does not: the frame was edited.
 * `bad_sequence`: frames are missing, repeated or swapped.
 */
export type GapReason = "torn_tail" | "bad_header" | "bad_payload" | "bad_chain" | "bad_sequence";

export interface FrameItem {
  kind: "frame";
  type: number;
  seq: number;
  offset: number;
  /** File length right after this frame. */
  end: number;
  digest: Uint8Array;
  /** A view that is valid until the next item is asked for. */
  payload: Buffer;
  /** False when the digest before this frame was lost, so that the chain could not be checked here. */
  linked: boolean;
}

export interface GapItem {
  kind: "gap";
  reason: GapReason;
  offset: number;
  bytes: number;
  /** Sequence number that was expected here. */
  seq: number;
}

export type ScanItem = FrameItem | GapItem;

export interface ScanOptions {
  mode: ReadMode;
  disk?: Disk;
  /** Skips the SHA-256 chain; CRCs and sequence are checked still. */
  skipChain?: boolean;
}

const WINDOW_BYTES = 1024 * 1024;

/** Reads the file at `path` as frames and gaps. Throws `not_found`, `format_invalid` (no file) or `io` when it cannot be read at all, `damaged` in strict mode. */
export function* scanFile(path: string, options: ScanOptions): Generator<ScanItem, void, void> {
  const disk = options.disk ?? nodeDisk;
  const fd = openForReading(disk, path);
  let window: Window | null = null;
  try {
    window = new Window(disk, fd, path);
    for (const item of scanWindow(window, options.skipChain === true)) {
      if (item.kind === "gap" && options.mode === "strict") throw damage(path, item);
      yield item;
      if (item.kind === "gap" && options.mode === "tail") return;
    }
  } finally {
    window?.release();
    closeQuietly(disk, fd);
  }
}

function openForReading(disk: Disk, path: string): number {
  try {
    // a planted FIFO must not block, a planted link must not be followed
    const fd = disk.open(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
    return fd;
  } catch (cause) {
    if (errorCode(cause) !== "ENOENT") throw cannotOpen(path, cause);
    throw new TitoError("not_found", `${path}: cannot be opened (${systemMessage(cause)})`, { cause });
  }
}

function damage(path: string, gap: GapItem): TitoError {
  return new TitoError(
    "damaged",
    `${path}: ${gap.reason} at offset ${gap.offset}, where record ${gap.seq} was expected`,
    {
      hint: "read it with --mode salvage to keep what is whole",
    },
  );
}

/** Where the walk stands. */
interface Position {
  offset: number;
  seq: number;
  /** Digest of the frame before; null when it was lost. */
  previous: Uint8Array | null;
}

function* scanWindow(window: Window, skipChain: boolean): Generator<ScanItem, void, void> {
  const at: Position = { offset: 0, seq: 0, previous: CHAIN_START };
  while (at.offset < window.fileBytes) {
    const head = window.view(at.offset, FRAME_HEADER_BYTES);
    const header = decodeFrameHeader(head, 0);
    if (header === null) {
      yield* passUnreadable(window, at, head);
    } else if (header.payloadBytes > window.fileBytes - at.offset - FRAME_HEADER_BYTES) {
      yield { kind: "gap", reason: "torn_tail", offset: at.offset, bytes: window.fileBytes - at.offset, seq: at.seq };
      return;
    } else {
      yield passFrame(window, at, header, skipChain);
    }
  }
}

/** A place where no header stands: a torn or empty tail, or damage up to the next header that holds. */
function* passUnreadable(window: Window, at: Position, head: Buffer): Generator<GapItem, void, void> {
  const rest = window.fileBytes - at.offset;
  const torn = rest < FRAME_HEADER_BYTES ? hasFrameShape(head) : false;
  const next = torn ? window.fileBytes : window.findHeader(at.offset + 1);
  const reason = torn || (next === window.fileBytes && window.isZero(at.offset)) ? "torn_tail" : "bad_header";
  yield { kind: "gap", reason, offset: at.offset, bytes: next - at.offset, seq: at.seq };
  at.offset = next;
  at.previous = null;
}

/** The frame at `at`, or what is wrong with it; `at` moves behind it. */
function passFrame(window: Window, at: Position, header: FrameHeader, skipChain: boolean): ScanItem {
  const offset = at.offset;
  const frameBytes = FRAME_HEADER_BYTES + header.payloadBytes;
  const frame = window.view(offset, frameBytes);
  const payload = frame.subarray(FRAME_HEADER_BYTES);
  const lostBefore = at.previous === null;
  // after a lost header the numbers may jump ahead, never back
  const inSequence = lostBefore ? header.seq >= at.seq : header.seq === at.seq;
  let problem: GapReason | null = null;
  if (crc32c(payload) !== header.payloadCrc) problem = "bad_payload";
  else if (!inSequence) problem = "bad_sequence";
  else if (!skipChain && at.previous !== null) {
    const read = { header: frame.subarray(0, FRAME_HEADER_BYTES), payload };
    if (!isChainDigest(header.digest, at.previous, read)) problem = "bad_chain";
  }
  const seqWanted = at.seq;
  at.offset = offset + frameBytes;
  // the header's CRC held, so its digest and number are what the next frame follows, whatever became of the payload
  at.previous = header.digest;
  at.seq = Math.max(at.seq, header.seq + 1);
  if (problem !== null) return { kind: "gap", reason: problem, offset, bytes: frameBytes, seq: seqWanted };
  const { type, seq, digest } = header;
  return { kind: "frame", type, seq, offset, end: at.offset, digest, payload, linked: !lostBefore };
}

/** The memory of a walk that ended, for the next one: fresh memory costs more than what is read into it. */
let spare: Buffer | null = null;
const EMPTY = Buffer.alloc(0);

/** A piece of the file in memory, moved forward as the walk goes on; grows only to hold one frame that is really there. */
class Window {
  readonly fileBytes: number;
  private buffer: Buffer;
  private start = 0;
  private length = 0;

  constructor(
    private readonly disk: Disk,
    private readonly fd: number,
    private readonly path: string,
  ) {
    const status = disk.fstat(fd);
    if (!isRegular(status)) throw notRegular(path);
    this.fileBytes = status.size;
    const wanted = Math.min(WINDOW_BYTES, this.fileBytes);
    this.buffer = spare !== null && spare.length >= wanted ? spare : Buffer.allocUnsafeSlow(wanted);
    if (this.buffer === spare) spare = null;
  }

  /** Gives the memory to the next walk. Views of it are void from here on. */
  release(): void {
    const { length } = this.buffer;
    if (length <= WINDOW_BYTES && length > (spare?.length ?? 0)) spare = this.buffer;
    this.buffer = EMPTY;
  }

  /** The bytes [offset, offset + bytes), fewer at the end of the file. Valid until the next call. */
  view(offset: number, bytes: number): Buffer {
    const wanted = Math.min(bytes, this.fileBytes - offset);
    if (offset < this.start || offset + wanted > this.start + this.length) this.load(offset, wanted);
    const from = offset - this.start;
    return this.buffer.subarray(from, Math.min(from + wanted, this.length));
  }

  private load(offset: number, wanted: number): void {
    if (wanted > this.buffer.length) this.buffer = Buffer.allocUnsafe(wanted);
    else if (wanted <= WINDOW_BYTES && this.buffer.length > WINDOW_BYTES)
      this.buffer = Buffer.allocUnsafe(WINDOW_BYTES);
    this.start = offset;
    const length = Math.min(this.buffer.length, this.fileBytes - offset);
    try {
      this.length = readFully(this.disk, this.fd, this.buffer, length, offset);
    } catch (cause) {
      throw new TitoError("io", `${this.path}: cannot be read (${systemMessage(cause)})`, { cause });
    }
  }

  /** Everything in memory from `offset` on; at least `bytes`, fewer only at the end of the file. */
  private ahead(offset: number, bytes: number): Buffer {
    this.view(offset, bytes);
    return this.buffer.subarray(offset - this.start, this.length);
  }

  /** Offset of the next header that holds, from `from` on; the file's length when there is none. */
  findHeader(from: number): number {
    let offset = from;
    while (offset + FRAME_HEADER_BYTES <= this.fileBytes) {
      const piece = this.ahead(offset, FRAME_HEADER_BYTES);
      const searched = piece.length - FRAME_HEADER_BYTES + 1;
      if (searched <= 0) break;
      for (
        let found = findFrameStart(piece, 0);
        found >= 0 && found < searched;
        found = findFrameStart(piece, found + 1)
      ) {
        if (decodeFrameHeader(piece, found) !== null) return offset + found;
      }
      offset += searched;
    }
    return this.fileBytes;
  }

  /** True when every byte from `offset` to the end is zero: space that was given to the file and never written. */
  isZero(offset: number): boolean {
    for (let at = offset; at < this.fileBytes; ) {
      const piece = this.ahead(at, 1);
      if (piece.length === 0) return false;
      for (let i = 0; i < piece.length; i++) if (piece[i] !== 0) return false;
      at += piece.length;
    }
    return true;
  }
}
