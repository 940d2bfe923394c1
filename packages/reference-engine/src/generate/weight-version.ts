/** `version` applies to the sampled ids from `start` to `end`, exclusive. */
export interface WeightVersionSpan {
  version: string;
  start: number;
  end: number;
}

/** The label of one set of weights. Other weights have an object of their own; only `/test` routes change the label of this one. */
export class WeightVersion {
  /** vLLM's own default. */
  #current = "default";
  #everSet = false;

  get current(): string {
    return this.#current;
  }

  /** True once a version was set; chat and completion replies carry it from then on. */
  get everSet(): boolean {
    return this.#everSet;
  }

  set(version: string): void {
    this.#current = version;
    this.#everSet = true;
  }
}

/** Notes that the sampled id at `index` was drawn under `version`. */
export function extendSpans(spans: WeightVersionSpan[], version: string, index: number): void {
  const last = spans.at(-1);
  if (last?.version === version) last.end = index + 1;
  else spans.push({ version, start: index, end: index + 1 });
}
