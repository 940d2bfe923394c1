/** Bytes in memory as a file to read, in as many pieces as a test wants: a read may be as short as `readBytesMax`. */
import { type Disk, nodeDisk } from "../../src/disk/disk.js";

export function memoryDisk(bytes: Uint8Array, readBytesMax = Number.POSITIVE_INFINITY): Disk {
  return {
    ...nodeDisk,
    open: () => 3,
    close: () => undefined,
    fstat: () => ({ dev: 0, ino: 0, nlink: 1, size: bytes.length, mode: 0o100600, uid: 0, isDirectory: false }),
    read(_fd, into, offset, length, position) {
      const piece = bytes.subarray(position, position + Math.min(length, readBytesMax));
      into.set(piece, offset);
      return piece.length;
    },
  };
}
