/** How a log is imported. */
import { NEUTRAL_SAMPLING } from "../sample/sampling.js";

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
  /** Sampling settings that the log does not tell; `neutral`: each changes nothing. */
  sampling?: "neutral" | Readonly<Record<string, number>>;
  harness?: string;
  metadata?: Readonly<Record<string, string>>;
  durability?: "fsync" | "write";
  onProgress?: (done: number, total: number) => void;
}

/** The settings that the user states for calls that do not. */
export function samplingOf({ sampling }: ImportOptions): Readonly<Record<string, number>> {
  return sampling === "neutral" ? NEUTRAL_SAMPLING : (sampling ?? {});
}
