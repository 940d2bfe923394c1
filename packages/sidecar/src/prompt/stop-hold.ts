/** Text that may be the start of a stop string is not given out: the engine cuts its text there, and what was given cannot be taken back. */

export class StopHold {
  private pending = "";

  constructor(private readonly stops: readonly string[]) {}

  /** Takes new text; gives what no stop string can begin in. */
  push(text: string): string {
    this.pending += text;
    const held = this.heldFrom();
    const out = this.pending.slice(0, held);
    this.pending = this.pending.slice(held);
    return out;
  }

  /** What was held back, when the text goes on elsewhere. */
  flush(): string {
    const out = this.pending;
    this.pending = "";
    return out;
  }

  /** First place where a stop string stands, or where the text's end is the beginning of one. */
  private heldFrom(): number {
    const { pending, stops } = this;
    for (let at = 0; at < pending.length; at++) {
      if (stops.some((stop) => pending.startsWith(stop, at) || stop.startsWith(pending.slice(at)))) return at;
    }
    return pending.length;
  }
}
