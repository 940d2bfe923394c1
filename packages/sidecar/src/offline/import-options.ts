/** How a log is imported. */

export interface ImportOptions {
  /** JSON lines, or files ending in `.json` that hold one record. Lines are in the order in which the calls ended. */
  logs: readonly string[];
  /** Directory that gets `<trajectory>/`. */
  out: string;
  /** Of lines that name none. Default: the name of the log. */
  trajectoryId?: string;
  /** Only `full_history` can be imported. */
  promptMode?: "full_history" | "incremental";
  /** Record a gap in place of a damaged line. */
  skipBad?: boolean;
  /** Count answers as delivered where the log does not say. */
  assumeDelivered?: boolean;
  model?: string;
  engine?: string;
  weightVersion?: string;
  logprobsMode?: "raw" | "processed";
  /** Sampling fields that the log does not tell. */
  sampling?: Readonly<Record<string, number>>;
  harness?: string;
  metadata?: Readonly<Record<string, string>>;
  durability?: "fsync" | "write";
  onProgress?: (done: number, total: number) => void;
}
