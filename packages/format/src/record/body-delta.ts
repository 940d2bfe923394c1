/**
 * Request bodies as bytes: each is stored as what differs from the best earlier body of the trajectory. A harness repeats its whole history at every
 * call, so that the middle between a common start and a common end is what is new. Memory is bounded: only recent bodies serve as a base.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { sha256 } from "./digest.js";
import { TitoError } from "./errors.js";
import { LIMITS } from "./limits.js";
import type { BodyDelta } from "./records.js";

/** Bodies that are kept as possible bases: one per lineage that is likely to go on. */
const BASES_MAX = 8;
const BASES_BYTES_MAX = 32 * 1024 * 1024;

/** Compression costs the event loop; beyond these sizes it is cheaper, then left out. About 5, 40 and 10 ms at the bounds. */
const BEST_BYTES_MAX = 256 * 1024;
const FAST_BYTES_MAX = 4 * 1024 * 1024;

/** What is new in a body is mostly short: tables and buffers made for 32 KiB would cost more than the compression. */
const SMALL_BYTES_MAX = 4096;
const SMALL = { windowBits: 12, memLevel: 5, chunkSize: SMALL_BYTES_MAX };

/** How much of a base must reappear for the new body to go on where it ended. */
const CONTAINED_SHARE = 0.9;

interface Base {
  callId: string;
  body: Uint8Array;
}

/** Bodies that later ones may build on: a writer and whoever checks its deltas keep the same. */
class Bases {
  /** Latest first. */
  list: Base[] = [];

  /** A body that contains nearly all of its base stands for it from now on; else both stay, for two conversations. */
  remember(callId: string, body: Uint8Array, best: { base: Base; prefix: number; suffix: number } | null): void {
    const contained = best !== null && best.prefix + best.suffix >= best.base.body.length * CONTAINED_SHARE;
    const replaced = contained ? best.base : null;
    const bases = [{ callId, body: new Uint8Array(body) }, ...this.list.filter((item) => item !== replaced)];
    let bytes = 0;
    this.list = bases.slice(0, BASES_MAX).filter((item) => {
      bytes += item.body.length;
      return bytes <= BASES_BYTES_MAX;
    });
  }
}

/** Follows the deltas of one boot in the order of its journal, with no more memory than their writer had. */
export class BodyReader {
  private readonly bases = new Bases();

  /**
   * Makes the body again. Throws `damaged` when it is not the one whose digest is recorded, `not_found` when it builds on a body that is none of those
   * which its writer could have built on.
   */
  read(callId: string, delta: BodyDelta): void {
    const { base_call_id: id, prefix, suffix } = delta;
    const base = id === null ? null : this.bases.list.find((item) => item.callId === id);
    if (base === undefined)
      throw new TitoError("not_found", `the request body of call ${callId} builds on call ${id}, which is not there`);
    const body = applyDelta(callId, delta, base === null ? new Uint8Array(0) : base.body);
    this.bases.remember(callId, body, base === null ? null : { base, prefix, suffix });
  }
}

export class BodyStore {
  private readonly bases = new Bases();

  /** The delta of a body against the best base, and the body becomes a base itself. Throws `body_too_large`. */
  encode(callId: string, body: Uint8Array): BodyDelta {
    if (body.length > LIMITS.bodyBytesMax) {
      throw new TitoError(
        "body_too_large",
        `a request body of ${body.length} bytes is above ${LIMITS.bodyBytesMax} bytes`,
      );
    }
    let best: { base: Base; prefix: number; suffix: number } | null = null;
    for (const base of this.bases.list) {
      const prefix = commonPrefix(base.body, body);
      const suffix = commonSuffix(base.body, body, Math.min(base.body.length, body.length) - prefix);
      if (prefix + suffix > (best === null ? 0 : best.prefix + best.suffix)) best = { base, prefix, suffix };
    }
    const middle = body.subarray(best?.prefix ?? 0, body.length - (best?.suffix ?? 0));
    this.bases.remember(callId, body, best);
    return {
      base_call_id: best?.base.callId ?? null,
      prefix: best?.prefix ?? 0,
      suffix: best?.suffix ?? 0,
      deflate: deflate(middle),
      bytes: body.length,
      sha256: sha256(body),
    };
  }
}

function deflate(bytes: Uint8Array): Uint8Array {
  const level = bytes.length <= BEST_BYTES_MAX ? 6 : bytes.length <= FAST_BYTES_MAX ? 1 : 0;
  return deflateRawSync(bytes, { level, ...(bytes.length <= SMALL_BYTES_MAX ? SMALL : {}) });
}

/** Blocks are compared natively, only the last one byte by byte. */
const BLOCK_BYTES = 4096;

function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (
    at + BLOCK_BYTES <= most &&
    Buffer.compare(a.subarray(at, at + BLOCK_BYTES), b.subarray(at, at + BLOCK_BYTES)) === 0
  ) {
    at += BLOCK_BYTES;
  }
  while (at < most && a[at] === b[at]) at++;
  return at;
}

function commonSuffix(a: Uint8Array, b: Uint8Array, most: number): number {
  let at = 0;
  while (
    at + BLOCK_BYTES <= most &&
    Buffer.compare(
      a.subarray(a.length - at - BLOCK_BYTES, a.length - at),
      b.subarray(b.length - at - BLOCK_BYTES, b.length - at),
    ) === 0
  ) {
    at += BLOCK_BYTES;
  }
  while (at < most && a[a.length - 1 - at] === b[b.length - 1 - at]) at++;
  return at;
}

/** Where bodies are looked up: a call's delta, or undefined when its intent is not there. */
export type BodySource = (callId: string) => BodyDelta | undefined;

/** The body of a call, byte for byte as it was received. Throws `damaged` when a body it builds on is missing or the digest differs. */
export function rebuildBodyFrom(source: BodySource, callId: string): Uint8Array {
  const chain: { callId: string; delta: BodyDelta }[] = [];
  const seen = new Set<string>();
  for (let id: string | null = callId; id !== null; ) {
    const delta: BodyDelta | undefined = source(id);
    if (delta === undefined)
      throw new TitoError("damaged", `the request body of call ${callId} builds on call ${id}, which is not there`);
    if (seen.has(id)) throw new TitoError("damaged", `the request body of call ${callId} builds on itself`);
    seen.add(id);
    chain.push({ callId: id, delta });
    id = delta.base_call_id;
  }
  let body: Uint8Array = new Uint8Array(0);
  for (const { callId: id, delta } of chain.reverse()) body = applyDelta(id, delta, body);
  return body;
}

function applyDelta(callId: string, delta: BodyDelta, base: Uint8Array): Uint8Array {
  const { prefix, suffix, bytes } = delta;
  if (bytes > LIMITS.bodyBytesMax || prefix + suffix > bytes || prefix > base.length || suffix > base.length) {
    throw new TitoError("damaged", `the request body of call ${callId} does not fit the body that it builds on`);
  }
  const middle = inflate(callId, delta.deflate, bytes - prefix - suffix);
  const body = new Uint8Array(bytes);
  body.set(base.subarray(0, prefix), 0);
  body.set(middle, prefix);
  body.set(base.subarray(base.length - suffix), bytes - suffix);
  if (Buffer.compare(sha256(body), delta.sha256) !== 0) {
    throw new TitoError("damaged", `the request body of call ${callId} has another digest than when it was received`);
  }
  return body;
}

function inflate(callId: string, deflated: Uint8Array, bytes: number): Uint8Array {
  let middle: Uint8Array;
  try {
    // one byte more than expected, so that a longer one is seen and a bomb is not unpacked
    middle = inflateRawSync(deflated, { maxOutputLength: bytes + 1 });
  } catch (cause) {
    throw new TitoError("damaged", `the request body of call ${callId} can not be unpacked`, { cause });
  }
  if (middle.length !== bytes)
    throw new TitoError(
      "damaged",
      `the request body of call ${callId} unpacks to ${middle.length} bytes, not ${bytes}`,
    );
  return middle;
}
