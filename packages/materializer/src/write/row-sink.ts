/** Stage "write": runs in, one output file out, in any of the formats, packed or not. I/O edge. */

import type { Policy } from "../recipe/policy.js";
import type { ByteTarget, WrittenFile } from "./byte-target.js";
import { packedToJsonl, packedToMsgpack } from "./encode.js";
import { encodeRun, type Format, madeOnly, type SinkInput } from "./encoded-run.js";
import { type PackedSample, Packer } from "./pack.js";
import type { RunSink } from "./run-sink.js";

export interface SinkOptions {
  format: Format;
  policy: Policy;
  wide: boolean;
}

/** True when runs become bytes one by one, so that workers can encode them. */
export function encodesRuns(format: Format, policy: Policy): boolean {
  return format !== "parquet" && policy.pack.max_tokens === null;
}

/** Opens the sink of a format. The Parquet writer is loaded only when it is needed. */
export async function openSink(target: ByteTarget, options: SinkOptions): Promise<RunSink> {
  const { pack } = options.policy;
  const packer = pack.max_tokens === null ? null : new Packer({ ...pack, max_tokens: pack.max_tokens });
  if (options.format !== "parquet") return new BytesSink(target, options.format, packer);
  const { openRowGroups } = await import("./row-group-sink.js");
  const { row_group_rows: rows, row_group_tokens: tokens } = options.policy.output;
  return openRowGroups(target, packer, { rows, tokens, wide: options.wide });
}

/** JSONL and msgpack: a row after the other. */
class BytesSink implements RunSink {
  private rows = 0;

  constructor(
    private readonly target: ByteTarget,
    private readonly format: "jsonl" | "msgpack",
    private readonly pack: Packer | null,
  ) {}

  async write(run: SinkInput): Promise<void> {
    if (this.pack) return this.writePacked(this.pack.add(madeOnly(run)));
    this.rows += 1;
    const { encoded } = "encoded" in run ? run : encodeRun(run, this.format);
    for (const bytes of encoded) await this.target.write(bytes);
  }

  private async writePacked(rows: readonly PackedSample[]): Promise<void> {
    for (const row of rows) {
      this.rows += 1;
      for (const bytes of this.format === "jsonl" ? packedToJsonl(row) : packedToMsgpack(row))
        await this.target.write(bytes);
    }
  }

  async finish(): Promise<WrittenFile & { rows: number }> {
    if (this.pack) await this.writePacked(this.pack.finish());
    return { ...(await this.target.finish()), rows: this.rows };
  }

  abort(): void {
    this.target.abort();
  }
}
