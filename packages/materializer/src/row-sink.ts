/** Stage "write": runs in, one output file out, in any of the formats, packed or not. I/O edge. */
import { TitoError } from "@tito/format";
import type { ByteTarget, WrittenFile } from "./byte-target.js";
import { packedToJsonl, packedToMsgpack, runToJsonl, runToMsgpack } from "./encode.js";
import { type PackedSample, Packer } from "./pack.js";
import { packedColumns, rowsOf, type SampleRow, sampleColumns } from "./parquet-rows.js";
import { ParquetSink } from "./parquet-sink.js";
import type { Policy } from "./policy.js";
import type { MadeRun } from "./rollout-run.js";

export const FORMATS = ["jsonl", "parquet", "msgpack"] as const;
export type Format = (typeof FORMATS)[number];

export interface SinkOptions {
  format: Format;
  policy: Policy;
  wide: boolean;
}

/** A run that a worker already turned into bytes. */
export interface EncodedRun {
  encoded: Uint8Array[];
}

export type SinkInput = MadeRun | EncodedRun;

/** True when runs become bytes one by one, so that workers can encode them. */
export function encodesRuns(format: Format, policy: Policy): boolean {
  return format !== "parquet" && policy.pack.max_tokens === null;
}

export function encodeRun(run: MadeRun, format: Format): EncodedRun {
  return { encoded: format === "jsonl" ? runToJsonl(run) : runToMsgpack(run) };
}

export interface RunSink {
  write(run: SinkInput): Promise<void>;
  finish(): Promise<WrittenFile & { rows: number }>;
  abort(): void;
}

export function openSink(target: ByteTarget, options: SinkOptions): RunSink {
  const { policy, format, wide } = options;
  const pack =
    policy.pack.max_tokens === null ? null : new Packer({ ...policy.pack, max_tokens: policy.pack.max_tokens });
  if (format !== "parquet") return new BytesSink(target, format, pack);
  const rows = policy.output.row_group_rows;
  if (pack)
    return new RowGroupSink<PackedSample>(
      target,
      rows,
      { add: (run) => pack.add(run), rest: () => pack.finish() },
      (batch) => packedColumns(batch, wide),
    );
  return new RowGroupSink<SampleRow>(target, rows, { add: rowsOf, rest: () => [] }, (batch) =>
    sampleColumns(batch, wide),
  );
}

function madeOnly(run: SinkInput): MadeRun {
  if ("encoded" in run) throw new TitoError("internal", "this output needs runs with their arrays");
  return run;
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

/** Parquet: rows are gathered until a row group is full, so that groups do not depend on how runs arrive. */
class RowGroupSink<Row> implements RunSink {
  private readonly sink: ParquetSink;
  private pending: Row[] = [];
  private rows = 0;

  constructor(
    target: ByteTarget,
    private readonly rowGroupRows: number,
    private readonly source: { add: (run: MadeRun) => Row[]; rest: () => Row[] },
    private readonly columnsOf: (rows: readonly Row[]) => Parameters<ParquetSink["write"]>[0],
  ) {
    this.sink = new ParquetSink(target, rowGroupRows);
  }

  async write(run: SinkInput): Promise<void> {
    this.pending.push(...this.source.add(madeOnly(run)));
    while (this.pending.length >= this.rowGroupRows) await this.flush(this.rowGroupRows);
  }

  private async flush(count: number): Promise<void> {
    const batch = this.pending.splice(0, count);
    this.rows += batch.length;
    await this.sink.write(this.columnsOf(batch), batch.length);
  }

  async finish(): Promise<WrittenFile & { rows: number }> {
    this.pending.push(...this.source.rest());
    // A file without any row still has its columns.
    while (this.pending.length > 0 || this.rows === 0) {
      await this.flush(this.rowGroupRows);
      if (this.rows === 0) break;
    }
    return { ...(await this.sink.finish()), rows: this.rows };
  }

  abort(): void {
    this.sink.abort();
  }
}
