/** Where output bytes go: a temporary file that becomes the output in one step, or a stream. I/O edge. */
import { createHash, type Hash } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Writable } from "node:stream";
import { TitoError } from "@tito/format";

export interface WrittenFile {
  bytes: number;
  sha256: string;
}

export interface ByteTarget {
  write(bytes: Uint8Array): Promise<void>;
  /** Makes everything durable and visible under the final name. */
  finish(): Promise<WrittenFile>;
  /** Leaves nothing behind. */
  abort(): void;
}

/** A file that appears under `path` only when it is whole. Errors: `cannot_write`. */
export class FileTarget implements ByteTarget {
  private readonly hash: Hash = createHash("sha256");
  private readonly temporary: string;
  private fd: number;
  private bytes = 0;

  constructor(private readonly path: string) {
    this.temporary = `${path}.${process.pid}.tmp`;
    try {
      rmSync(this.temporary, { force: true });
      this.fd = openSync(this.temporary, "wx", 0o644);
    } catch (error) {
      throw cannotWrite(path, error);
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.fd, bytes, at);
    } catch (error) {
      throw cannotWrite(this.path, error);
    }
    this.hash.update(bytes);
    this.bytes += bytes.length;
  }

  async finish(): Promise<WrittenFile> {
    try {
      fsyncSync(this.fd);
      closeSync(this.fd);
      this.fd = -1;
      renameSync(this.temporary, this.path);
      syncDirectory(dirname(this.path));
    } catch (error) {
      throw cannotWrite(this.path, error);
    }
    return { bytes: this.bytes, sha256: this.hash.digest("hex") };
  }

  abort(): void {
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
    rmSync(this.temporary, { force: true });
  }
}

/** Standard output, or any stream; honours its backpressure. */
export class StreamTarget implements ByteTarget {
  private readonly hash: Hash = createHash("sha256");
  private bytes = 0;

  constructor(private readonly stream: Writable) {
    // A write that fails says so in its callback; the event alone would end the process.
    stream.on("error", () => undefined);
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.hash.update(bytes);
    this.bytes += bytes.length;
    await new Promise<void>((resolve, reject) => {
      this.stream.write(bytes, (error) =>
        error ? reject(new TitoError("io", `standard output: ${error.message}`)) : resolve(),
      );
    });
  }

  async finish(): Promise<WrittenFile> {
    return { bytes: this.bytes, sha256: this.hash.digest("hex") };
  }

  abort(): void {}
}

function syncDirectory(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** `cannot_write` with the path and the system's message. */
export function cannotWrite(path: string, error: unknown): TitoError {
  return new TitoError("cannot_write", `${path}: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
    hint: "check that the directory exists, is writable and has room",
  });
}
