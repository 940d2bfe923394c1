/**
 * Room that is kept for the worst moment: a file of 64 KiB whose removal lets the degraded seal be written on a full disk, and whose descriptor,
 * once closed, lets a file be opened when there are none left.
 */

import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { closeQuietly, writeFully } from "./disk.js";
import { BALLAST_FILE, type HeldDir, removeQuietly } from "./trajectory-dir.js";

const BALLAST_BYTES = 64 * 1024;

export class Ballast {
  private fd: number | null;

  /** Creates the file anew. Throws the system error: a disk without this much room is no place for a trajectory. */
  constructor(private readonly dir: HeldDir) {
    removeQuietly(dir, BALLAST_FILE);
    const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
    this.fd = dir.disk.open(dir.at(BALLAST_FILE), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    // random, so that a compressing file system can not make it small
    try {
      writeFully(dir.disk, this.fd, [randomBytes(BALLAST_BYTES)], () => undefined);
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Gives the room and the descriptor back. */
  drop(): void {
    if (this.fd === null) return;
    closeQuietly(this.dir.disk, this.fd);
    this.fd = null;
    removeQuietly(this.dir, BALLAST_FILE);
  }
}
