/**
 * One append-only file of frames: created new, appended to, synced, closed. It is never opened again for writing, truncated or repaired.
 * A failed sync is final (https://wiki.postgresql.org/wiki/Fsync_Errors): the kernel may have dropped the pages, and a second try would lie.
 */
import fs from "node:fs";
import { closeQuietly, type Disk, errorCode, writeFully } from "../disk/disk.js";
import { CHAIN_START, encodeFrame } from "../frame/frame.js";
import type { MacKey } from "../frame/mac.js";
import { TitoError } from "../record/errors.js";

export type Durability = "fsync" | "write";

/** The end of a file's chain: number and digest of its last record, and the file's length. */
export interface Head {
  seq: number;
  digest: Uint8Array;
  bytes: number;
}

/** Where a record was put. */
export interface Place extends Head {
  offset: number;
}

export interface FrameFileOptions {
  disk: Disk;
  /** Path to create; under the directory's own descriptor where the system has /proc. */
  path: string;
  /** Path inside the trajectory, for messages and commit records. */
  name: string;
  durability: Durability;
  /** Set when every record is to be followed by its keyed digest. */
  mac: MacKey | null;
}

export class FrameFile {
  readonly name: string;
  /** Set when a write ended inside a frame or a sync failed: nothing may be appended any more. */
  broken: string | null = null;
  records = 0;
  private readonly disk: Disk;
  private readonly path: string;
  private durability: Durability;
  private readonly mac: MacKey | null;
  private readonly fd: number;
  private readonly identity: { dev: number; ino: number };
  private open = true;
  private seq = 0;
  private appended: Head = { seq: -1, digest: CHAIN_START, bytes: 0 };
  private durable: Head = { seq: -1, digest: CHAIN_START, bytes: 0 };
  private running: Promise<void> | null = null;
  private next: Promise<void> | null = null;

  /** Creates the file. Throws Node's system error (EEXIST when it is there already). */
  constructor(options: FrameFileOptions) {
    this.disk = options.disk;
    this.path = options.path;
    this.name = options.name;
    this.durability = options.durability;
    this.mac = options.mac;
    const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND, O_NOFOLLOW } = fs.constants;
    this.fd = this.disk.open(this.path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0o600);
    const { dev, ino } = this.disk.fstat(this.fd);
    this.identity = { dev, ino };
  }

  /** Head of everything appended. */
  get head(): Head {
    return this.appended;
  }

  /** Head of what a power cut would leave. */
  get durableHead(): Head {
    return this.durable;
  }

  get isIdle(): boolean {
    return this.running === null && this.next === null;
  }

  /** True when something that was appended is not durable and never will be: nothing may be built on this file. */
  get isLost(): boolean {
    return this.broken !== null && this.durable.bytes < this.appended.bytes;
  }

  /** Ends `write` durability: what is appended from now on is durable once it was synced. */
  startSyncing(): void {
    this.durability = "fsync";
  }

  /** Appends one record as one write. Throws the system error; `broken` is set when the frame is torn. */
  append(type: number, payload: Uint8Array): Place {
    if (this.broken !== null || !this.open) {
      throw new TitoError("io", `${this.name}: nothing can be appended (${this.broken ?? "closed"})`);
    }
    const frame = encodeFrame(type, this.seq, payload, this.appended.digest);
    const buffers = [frame.header, frame.payload];
    const offset = this.appended.bytes;
    const place = { seq: this.seq, digest: frame.digest, offset, bytes: offset + frame.header.length + payload.length };
    let end: Head = place;
    if (this.mac !== null) {
      const { type: macType, payload: macPayload } = this.mac.sign(frame.digest);
      const mac = encodeFrame(macType, place.seq + 1, macPayload, frame.digest);
      buffers.push(mac.header, mac.payload);
      end = { seq: place.seq + 1, digest: mac.digest, bytes: place.bytes + mac.header.length + macPayload.length };
    }
    this.write(buffers);
    this.mac?.advance();
    this.appended = { seq: end.seq, digest: end.digest, bytes: end.bytes };
    this.seq = end.seq + 1;
    this.records = this.seq;
    if (this.durability === "write") this.durable = this.appended;
    return place;
  }

  private write(buffers: readonly Uint8Array[]): void {
    let taken = 0;
    try {
      writeFully(this.disk, this.fd, buffers, (bytes) => {
        taken += bytes;
      });
    } catch (error) {
      if (taken > 0) this.broken = `a write ended after ${taken} bytes: ${errorCode(error) ?? "error"}`;
      throw error;
    }
  }

  /** Resolves when everything appended before the call is durable. Callers that wait at the same time share a sync. */
  sync(): Promise<void> {
    if (this.broken !== null)
      return Promise.reject(new TitoError("io", `${this.name}: cannot be synced (${this.broken})`));
    if (this.durable.bytes === this.appended.bytes) return Promise.resolve();
    this.next ??= (this.running ?? Promise.resolve()).then(() => this.runSync());
    return this.next;
  }

  private runSync(): Promise<void> {
    const upTo = this.appended;
    this.next = null;
    const sync = this.disk.fdatasync(this.fd).then(
      () => {
        this.durable = upTo;
        this.running = null;
      },
      (error: unknown) => {
        this.broken = `a sync failed: ${errorCode(error) ?? "error"}`;
        this.running = null;
        throw error;
      },
    );
    this.running = sync;
    return sync;
  }

  /** Why the path no longer leads to this file as it was written; null when it does. */
  findIdentityProblem(): string | null {
    let status: ReturnType<Disk["lstat"]>;
    try {
      status = this.disk.lstat(this.path);
    } catch (error) {
      return `${this.name} is gone (${errorCode(error) ?? "error"})`;
    }
    if (status.dev !== this.identity.dev || status.ino !== this.identity.ino) return `${this.name} was replaced`;
    if (status.nlink !== 1) return `${this.name} has ${status.nlink} names`;
    if (status.size !== this.appended.bytes)
      return `${this.name} has ${status.size} bytes where ${this.appended.bytes} were written`;
    return null;
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    closeQuietly(this.disk, this.fd);
  }
}
