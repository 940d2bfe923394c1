/**
 * The frame: one msgpack array of seven values, each written at a fixed width, so that the header is 66 bytes at known offsets and a stock
 * msgpack reader walks a file as a sequence of arrays. docs/format.md#frame is the same in prose.
 *
 *   offset  0  0x97                 array of 7
 *           1  0xce u32             magic
 *           6  0xcc u8              record type
 *           8  0xcf u64             sequence number in this file, from 0
 *          17  0xce u32             CRC-32C of the payload
 *          22  0xce u32             CRC-32C of these 66 bytes with this number as 0: a flipped length is never taken for a torn tail
 *          27  0xc4 0x20 bin 32     chain digest
 *          61  0xc6 bin32 length    payload follows
 */
import { createHash } from "node:crypto";
import { digestBytes, hashAtOnce } from "../record/digest.js";
import { TitoError } from "../record/errors.js";
import { LIMITS } from "../record/limits.js";
import { crc32c } from "./crc32c.js";

/** "tito" as big-endian u32. */
export const FRAME_MAGIC = 0x7469746f;
export const FRAME_HEADER_BYTES = 66;
const DIGEST_BYTES = 32;

const TYPE_AT = 7;
const SEQ_AT = 9;
const PAYLOAD_CRC_AT = 18;
const HEADER_CRC_AT = 23;
const CHAIN_AT = 29;
const LENGTH_AT = 62;

/** The chain digest that the first frame of a file follows. */
export const CHAIN_START: Uint8Array = new Uint8Array(DIGEST_BYTES);

/** A header with everything that does not change between frames. */
const TEMPLATE = makeTemplate();

function makeTemplate(): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header[0] = 0x97;
  header[1] = 0xce;
  header.writeUInt32BE(FRAME_MAGIC, 2);
  header[6] = 0xcc;
  header[8] = 0xcf;
  header[17] = 0xce;
  header[22] = 0xce;
  header[27] = 0xc4;
  header[28] = DIGEST_BYTES;
  header[61] = 0xc6;
  return header;
}

/** What a valid header says. `digest` is a copy. */
export interface FrameHeader {
  type: number;
  seq: number;
  payloadCrc: number;
  digest: Uint8Array;
  payloadBytes: number;
}

/** A frame ready to be appended: the two parts in order, and the chain digest that the next frame follows. */
export interface EncodedFrame {
  header: Buffer;
  payload: Uint8Array;
  digest: Uint8Array;
}

/**
 * Chain digest of a frame: SHA-256(previous digest ‖ header with digest and header CRC as zeros ‖ payload).
 * Every byte of the frame that carries meaning is covered.
 */
export function chainDigest(previous: Uint8Array, header: Uint8Array, payload: Uint8Array): Uint8Array {
  return digestBytes(chainText(previous, header, payload));
}

/** True when `digest` is the chain digest of a frame. */
export function isChainDigest(
  digest: Uint8Array,
  previous: Uint8Array,
  frame: { header: Uint8Array; payload: Uint8Array },
): boolean {
  const text = chainText(previous, frame.header, frame.payload);
  for (let i = 0; i < DIGEST_BYTES; i++) if (text.charCodeAt(i) !== digest[i]) return false;
  return true;
}

/** The digest, one character a byte: text is what a hash in one call gives without an object that has to be collected. */
function chainText(previous: Uint8Array, header: Uint8Array, payload: Uint8Array): string {
  // One piece of memory for all frames: it is read before the next call can write to it.
  linked.set(previous, 0);
  linked.set(header, DIGEST_BYTES);
  linked.fill(0, DIGEST_BYTES + HEADER_CRC_AT, DIGEST_BYTES + HEADER_CRC_AT + 4);
  linked.fill(0, DIGEST_BYTES + CHAIN_AT, DIGEST_BYTES + CHAIN_AT + DIGEST_BYTES);
  const bytes = LINK_BYTES + payload.length;
  if (hashAtOnce === undefined || bytes > linked.length)
    return createHash("sha256").update(linked.subarray(0, LINK_BYTES)).update(payload).digest("binary");
  linked.set(payload, LINK_BYTES);
  return hashAtOnce("sha256", linked.subarray(0, bytes), "binary");
}

const LINK_BYTES = DIGEST_BYTES + FRAME_HEADER_BYTES;
/** What links a frame to the one before it, then room for the payload of most frames. */
const linked = Buffer.alloc(LINK_BYTES + 32 * 1024);
const headerCopy = Buffer.alloc(FRAME_HEADER_BYTES);

/** Builds the frame that follows `previous`. Throws `format_limit` when the payload is too long, `internal` when type or seq are not sane. */
export function encodeFrame(type: number, seq: number, payload: Uint8Array, previous: Uint8Array): EncodedFrame {
  if (payload.length > LIMITS.payloadBytesMax) {
    throw new TitoError("format_limit", `a record of ${payload.length} bytes is above ${LIMITS.payloadBytesMax} bytes`);
  }
  if (!Number.isInteger(type) || type < 0 || type > 0xff || !Number.isSafeInteger(seq) || seq < 0) {
    throw new TitoError("internal", `a frame of type ${type} with sequence number ${seq} cannot be written`);
  }
  const header = Buffer.from(TEMPLATE);
  header[TYPE_AT] = type;
  header.writeUInt32BE(Math.floor(seq / 2 ** 32), SEQ_AT);
  header.writeUInt32BE(seq >>> 0, SEQ_AT + 4);
  header.writeUInt32BE(crc32c(payload), PAYLOAD_CRC_AT);
  header.writeUInt32BE(payload.length, LENGTH_AT);
  const digest = chainDigest(previous, header, payload);
  header.set(digest, CHAIN_AT);
  header.writeUInt32BE(crc32c(header), HEADER_CRC_AT);
  return { header, payload, digest };
}

/** CRC-32C of a header with its own field as zero. */
function headerCrc(header: Uint8Array): number {
  headerCopy.set(header);
  headerCopy.fill(0, HEADER_CRC_AT, HEADER_CRC_AT + 4);
  return crc32c(headerCopy);
}

/** Reads the header at `offset` of `bytes` (66 bytes must be there); null when anything in it is not as it was written. */
export function decodeFrameHeader(bytes: Buffer, offset: number): FrameHeader | null {
  const header = bytes.subarray(offset, offset + FRAME_HEADER_BYTES);
  if (header.length < FRAME_HEADER_BYTES || !hasFrameShape(header)) return null;
  if (headerCrc(header) !== header.readUInt32BE(HEADER_CRC_AT)) return null;
  const seq = header.readUInt32BE(SEQ_AT) * 2 ** 32 + header.readUInt32BE(SEQ_AT + 4);
  const payloadBytes = header.readUInt32BE(LENGTH_AT);
  if (!Number.isSafeInteger(seq) || payloadBytes > LIMITS.payloadBytesMax) return null;
  return {
    type: header[TYPE_AT]!,
    seq,
    payloadCrc: header.readUInt32BE(PAYLOAD_CRC_AT),
    digest: Buffer.from(header.subarray(CHAIN_AT, CHAIN_AT + DIGEST_BYTES)),
    payloadBytes,
  };
}

/** True while the constant bytes are those of a header; of a shorter piece, as far as it goes. */
export function hasFrameShape(piece: Uint8Array): boolean {
  const length = Math.min(piece.length, FRAME_HEADER_BYTES);
  for (let i = 0; i < length; i++) {
    if (CONSTANT[i] === 1 && piece[i] !== TEMPLATE[i]) return false;
  }
  return true;
}

/** 1 where a header byte is the same in every frame. */
const CONSTANT = makeConstantMask();

function makeConstantMask(): Uint8Array {
  const mask = new Uint8Array(FRAME_HEADER_BYTES).fill(1);
  for (const [at, bytes] of [
    [TYPE_AT, 1],
    [SEQ_AT, 8],
    [PAYLOAD_CRC_AT, 4],
    [HEADER_CRC_AT, 4],
    [CHAIN_AT, DIGEST_BYTES],
    [LENGTH_AT, 4],
  ] as const) {
    mask.fill(0, at, at + bytes);
  }
  return mask;
}

/** First offset at or after `from` where the constant start of a header stands; -1 when there is none. */
export function findFrameStart(bytes: Buffer, from: number): number {
  return bytes.indexOf(FRAME_START, from);
}

/** The seven bytes that every frame starts with. */
const FRAME_START: Buffer = TEMPLATE.subarray(0, TYPE_AT);
