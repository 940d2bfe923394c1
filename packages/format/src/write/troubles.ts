/** Records about trouble: the disk that they are about may not take them at once. */
import type { Journal } from "./journal.js";

/** Records that wait for a disk that takes them; the manifest counts those beyond. */
const WAITING_MAX = 1000;

export class Troubles {
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly journal: Journal) {}

  get allWritten(): boolean {
    return this.waiting.length === 0;
  }

  /** Writes a record as far as anything can be written. What can not be written now is tried again with the next one, and at seal. */
  note(append: () => void): void {
    if (this.waiting.length < WAITING_MAX) this.waiting.push(append);
    for (let attempt = 0; attempt < 2; attempt++) {
      try {
        this.write();
        return;
      } catch {
        // the manifest still says it, and a missing COMPLETE does when even that can not be written
      }
    }
  }

  /** Writes what waits: in this journal, else in a new one. Throws the system error. */
  write(): void {
    if (this.journal.broken) this.journal.startNext();
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      next();
      this.waiting.shift();
    }
  }
}
