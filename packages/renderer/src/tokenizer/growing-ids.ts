/**
 * Ids of a conversation, in a block with room at its end: the ids of the next prompt are written behind those of the one before, so that a long history is not copied
 * at every turn. Ids that were given out never change.
 */

const ROOM_MIN = 4096;

export class GrowingIds {
  #block = new Int32Array(0);
  #used = 0;

  /** The first `keep` ids here, then `parts`; and the block that holds them, which is this one unless it says otherwise behind `keep` or is full. */
  continueWith(keep: number, parts: readonly Int32Array[]): { ids: Int32Array; block: GrowingIds } {
    const length = parts.reduce((sum, part) => sum + part.length, keep);
    const block = length <= this.#block.length && this.#saysSame(keep, parts) ? this : this.#copy(keep, length);
    let at = keep;
    for (const part of parts) {
      // What stands there already is the same; what is given out is not even written again.
      const known = Math.min(Math.max(block.#used - at, 0), part.length);
      if (known < part.length) block.#block.set(part.subarray(known), at + known);
      at += part.length;
    }
    block.#used = Math.max(block.#used, length);
    return { ids: block.#block.subarray(0, length), block };
  }

  #saysSame(keep: number, parts: readonly Int32Array[]): boolean {
    let at = keep;
    for (const part of parts) {
      for (let i = 0; i < part.length && at < this.#used; i++, at++) if (part[i] !== this.#block[at]) return false;
    }
    return true;
  }

  #copy(keep: number, length: number): GrowingIds {
    const copy = new GrowingIds();
    // Nothing is read before it is written: clearing the memory first would cost as much as the copy.
    copy.#block = new Int32Array(Buffer.allocUnsafeSlow(4 * (length + Math.max(ROOM_MIN, length >> 1))).buffer);
    copy.#block.set(this.#block.subarray(0, keep));
    copy.#used = keep;
    return copy;
  }
}
