/**
 * The ids that a gateway has sealed, for ever: a trajectory's directory is collected and goes away, and its id must stay closed, also for the next process on the
 * same directory. One file beside the trajectories, a line for each id with a checksum of it, appended and synced before the trajectory is complete.
 */
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { sha256, TitoError } from "@tito/format";

/** No trajectory can have this name: ids have no dot. */
export const SEALED_IDS_FILE = "sealed-ids.txt";
/** As many ids as one output directory can close: 19 MB in the file, and each start reads them all. */
const IDS_MAX = 250_000;
/** An id of 64 characters, a space, eight of the checksum, a line end. */
const LINE_BYTES_MAX = 74;
const LINE = /^([A-Za-z0-9_-]{1,64}) ([0-9a-f]{8})$/;

const sync = promisify(fdatasync);

export class SealedIds {
  private readonly ids = new Set<string>();
  private fd: number | null = null;
  /** Bytes of whole lines when the file was read; what is behind them was being written when a process died, and no seal had been answered yet. */
  private wholeBytes = 0;

  private constructor(
    private readonly out: string,
    private readonly idsMax: number,
  ) {}

  /** Reads what earlier processes left in `out`. @throws TitoError `damaged` that names the line, or `io`. */
  static read(out: string, idsMax: number = IDS_MAX): SealedIds {
    const sealed = new SealedIds(out, idsMax);
    sealed.load();
    return sealed;
  }

  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** @throws TitoError `format_limit` when no more ids can be closed: then none may be opened. */
  checkRoom(): void {
    if (this.ids.size < this.idsMax) return;
    throw new TitoError(
      "format_limit",
      `${this.ids.size} trajectories were sealed here, which is the most that one directory can hold`,
      {
        hint: "start the gateway with another --out",
      },
    );
  }

  /** Closes an id from now on; resolves when that is durable. @throws the system's error when it can not be: this process keeps the id closed all the same. */
  async close(id: string): Promise<void> {
    if (this.ids.has(id)) return;
    this.ids.add(id);
    this.fd ??= this.open();
    writeSync(this.fd, `${id} ${checksum(id)}\n`);
    await sync(this.fd);
  }

  private get file(): string {
    return join(this.out, SEALED_IDS_FILE);
  }

  private load(): void {
    const bytes = readWhole(this.file, LINE_BYTES_MAX * (this.idsMax + 1));
    if (bytes === null) return;
    this.wholeBytes = bytes.lastIndexOf(0x0a) + 1;
    const lines = bytes.subarray(0, this.wholeBytes).toString("latin1").split("\n").slice(0, -1);
    for (const [index, line] of lines.entries()) {
      const match = LINE.exec(line);
      if (match === null || checksum(match[1]!) !== match[2]) throw damaged(this.file, index + 1);
      this.ids.add(match[1]!);
    }
  }

  private open(): number {
    mkdirSync(this.out, { recursive: true, mode: 0o700 });
    const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
    const fd = openSync(this.file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
    if (fstatSync(fd).size > this.wholeBytes) ftruncateSync(fd, this.wholeBytes);
    const directory = openSync(this.out, constants.O_RDONLY);
    fsyncSync(directory);
    closeSync(directory);
    return fd;
  }
}

function checksum(id: string): string {
  return sha256(id).toString("hex").slice(0, 8);
}

/** Null when there is none. A link or a pipe in its place is not followed and not waited for. */
function readWhole(file: string, bytesMax: number): Buffer | null {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw unreadable(file, code ?? String(cause), cause);
  }
  try {
    const status = fstatSync(fd);
    if (!status.isFile()) throw unreadable(file, "it is no plain file");
    if (status.size > bytesMax) throw unreadable(file, `it is larger than ${bytesMax} bytes`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

function unreadable(file: string, why: string, cause?: unknown): TitoError {
  return new TitoError("io", `${file}: which trajectories were sealed can not be read: ${why}`, {
    cause,
    hint: "put it right, or start the gateway with another --out",
  });
}

function damaged(file: string, line: number): TitoError {
  return new TitoError(
    "damaged",
    `${file}: line ${line} is damaged, so that it is not known which trajectory is sealed`,
    {
      hint: "take that line out and start again: only the id that stood in it could be opened anew. Or use another --out",
    },
  );
}
