/**
 * Keyed digests, the optional layer above the chain. Each record is followed by a record of type 0x80 that holds HMAC-SHA256 of the record's chain
 * digest under a key that then evolves, k ← SHA-256(k), and is erased: who reads the memory later can not forge what came before.
 * Readers without the key skip these records, so that files with and without them are the same version.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { TitoError } from "../record/errors.js";
import { count, digest, type Field, record } from "../record/fields.js";
import { packPayload, unpackPayload } from "../record/payload.js";
import type { WireMap } from "../record/payload-reader.js";

export const MAC_TYPE = 0x80;
/** Shorter keys are refused. */
export const HMAC_KEY_BYTES_MIN = 16;

/** The record of type 0x80: keyed digest number `index` of boot `boot`. */
export interface MacRecord {
  boot: number;
  index: number;
  mac: Uint8Array;
}

const fields: Field<MacRecord> = record<MacRecord>({ boot: count, index: count, mac: digest });

/** First key of a boot, from the key that was handed over. */
function bootKey(key: Uint8Array, trajectoryId: string, boot: number): Buffer {
  if (key.length < HMAC_KEY_BYTES_MIN) {
    throw new TitoError("usage", `the HMAC key has ${key.length} bytes; at least ${HMAC_KEY_BYTES_MIN} are needed`);
  }
  return createHmac("sha256", key).update(`tito.mac/v1\n${trajectoryId}\n${boot}`).digest();
}

function evolve(key: Buffer): Buffer {
  const next = createHash("sha256").update(key).digest();
  key.fill(0);
  return next;
}

function macOf(key: Uint8Array, boot: number, index: number, chain: Uint8Array): Buffer {
  return createHmac("sha256", key).update(`${boot}\n${index}\n`).update(chain).digest();
}

/** The writer's key: signs in order, and forgets each key once its record was written. */
export class MacKey {
  private key: Buffer;
  private index = 0;

  /** Derives the boot's first key. The caller erases `key` afterwards. */
  constructor(
    key: Uint8Array,
    trajectoryId: string,
    private readonly boot: number,
  ) {
    this.key = bootKey(key, trajectoryId, boot);
  }

  /** The record that follows a frame with this chain digest. */
  sign(chain: Uint8Array): { type: number; payload: Uint8Array } {
    const value: MacRecord = { boot: this.boot, index: this.index, mac: macOf(this.key, this.boot, this.index, chain) };
    return { type: MAC_TYPE, payload: packPayload(fields.write(value, "") as WireMap) };
  }

  /** The record was written: its key is forgotten. One that could not be written leaves its number to the next. */
  advance(): void {
    this.key = evolve(this.key);
    this.index++;
  }

  erase(): void {
    this.key.fill(0);
  }
}

export function decodeMac(payload: Uint8Array, where: string): MacRecord {
  return fields.read(unpackPayload(payload, where), "");
}

/** Every how many keys the verifier keeps one, to start from when a file's numbers begin later. */
const KEPT_EVERY = 1024;
/** Numbers up to here are always looked at: a second of hashing. */
const INDEX_MIN_MAX = 1_000_000;
/** A record and its keyed digest take more bytes than this. */
const SIGNED_BYTES_MIN = 128;

/** The verifier's side: the same keys, for any index. Memory grows by 32 bytes per 1024 records. */
export class MacVerifier {
  private readonly kept = new Map<number, Buffer[]>();
  private cursor: { boot: number; index: number; key: Buffer } | null = null;
  private readonly indexMax: number;

  /** `bytes`: what the trajectory has. A number beyond what fits into them is a forgery, not a reason to hash for hours. */
  constructor(
    private readonly key: Uint8Array,
    private readonly trajectoryId: string,
    bytes: number,
  ) {
    this.indexMax = Math.max(INDEX_MIN_MAX, bytes / SIGNED_BYTES_MIN);
  }

  /** True when `mac` was made with this key for a frame with this chain digest. */
  verify(mac: MacRecord, chain: Uint8Array): boolean {
    if (mac.index > this.indexMax) return false;
    const key = this.keyAt(mac.boot, mac.index);
    return timingSafeEqual(macOf(key, mac.boot, mac.index, chain), mac.mac);
  }

  private keyAt(boot: number, index: number): Buffer {
    const kept = this.kept.get(boot) ?? [bootKey(this.key, this.trajectoryId, boot)];
    this.kept.set(boot, kept);
    const from = Math.min(Math.floor(index / KEPT_EVERY), kept.length - 1);
    let at = from * KEPT_EVERY;
    let key: Buffer = Buffer.from(kept[from]!);
    if (this.cursor?.boot === boot && this.cursor.index <= index && this.cursor.index > at) {
      at = this.cursor.index;
      key = Buffer.from(this.cursor.key);
    }
    while (at < index) {
      key = evolve(key);
      at++;
      if (at % KEPT_EVERY === 0 && kept.length === at / KEPT_EVERY) kept.push(Buffer.from(key));
    }
    this.cursor = { boot, index, key: Buffer.from(key) };
    return key;
  }
}
