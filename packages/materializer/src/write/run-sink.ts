/** What the sinks of all formats can do. */
import type { WrittenFile } from "./byte-target.js";
import type { SinkInput } from "./encoded-run.js";

export interface RunSink {
  write(run: SinkInput): Promise<void>;
  finish(): Promise<WrittenFile & { rows: number }>;
  abort(): void;
}
