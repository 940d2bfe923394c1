import type { Fault, QueuedFault } from "./schema.js";

/** What can be waited for: current numbers (`running`, `hanging`) and totals (`finished`, `aborted`) of requests. */
export const GAUGES = ["running", "hanging", "finished", "aborted"] as const;
export type Gauge = (typeof GAUGES)[number];

interface Entry extends QueuedFault {
  seen: number;
}

/** The queue of faults and the requests that are held. Tests steer it through the `/test/*` routes; nobody else can reach it. */
export class FaultBoard {
  #queue: Entry[] = [];
  readonly #held = new Set<() => void>();
  readonly #gauges = new Map<Gauge, number>(GAUGES.map((name) => [name, 0]));
  readonly #watchers = new Set<() => void>();

  add(faults: readonly QueuedFault[]): void {
    for (const fault of faults) this.#queue.push({ ...fault, seen: 0 });
  }

  pending(): QueuedFault[] {
    return this.#queue.map(({ times, on, fault }) => ({ times, on, fault }));
  }

  clear(): void {
    this.#queue = [];
  }

  /**
   * The fault for this request, taken off the queue; null for none. At most one befalls a request.
   * `onlyNamed`: a route that samples nothing gets only the faults that name its path.
   */
  take(path: string, body: string, { onlyNamed }: { onlyNamed: boolean }): Fault | null {
    for (const entry of this.#queue) {
      if (entry.on.path === undefined ? onlyNamed : entry.on.path !== path) continue;
      if (entry.on.match !== undefined && !body.includes(entry.on.match)) continue;
      entry.seen++;
      if (entry.on.nth !== undefined && entry.seen < entry.on.nth) continue;
      entry.times--;
      if (entry.times === 0) this.#queue = this.#queue.filter((other) => other !== entry);
      return entry.fault;
    }
    return null;
  }

  /** Holds a request until it is released or its client goes. */
  async hold(signal: AbortSignal): Promise<void> {
    this.count("hanging", 1);
    await new Promise<void>((resolve) => {
      const go = () => {
        this.#held.delete(go);
        resolve();
      };
      this.#held.add(go);
      signal.addEventListener("abort", go, { once: true });
      if (signal.aborted) go();
    });
    this.count("hanging", -1);
  }

  /** Lets all held requests go on; says how many. */
  release(): number {
    const held = [...this.#held];
    this.#held.clear();
    for (const resolve of held) resolve();
    return held.length;
  }

  count(gauge: Gauge, change: number): void {
    this.#gauges.set(gauge, this.value(gauge) + change);
    for (const watcher of [...this.#watchers]) watcher();
  }

  value(gauge: Gauge): number {
    return this.#gauges.get(gauge) ?? 0;
  }

  /** Resolves once the gauge is at least `atLeast`, or when `signal` fires. */
  async until(gauge: Gauge, atLeast: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const check = () => {
        if (this.value(gauge) < atLeast && !signal.aborted) return;
        this.#watchers.delete(check);
        resolve();
      };
      this.#watchers.add(check);
      signal.addEventListener("abort", check, { once: true });
      check();
    });
  }
}
