/** Stage "write" for Parquet: rows become row groups of a fixed number of rows. I/O edge. */
import type { ByteTarget, WrittenFile } from "./byte-target.js";
import type { Column } from "./columns.js";
import { madeOnly, type SinkInput } from "./encoded-run.js";
import type { PackedSample, Packer } from "./pack.js";
import { packedColumns, rowsOf, type SampleRow, sampleColumns } from "./parquet-rows.js";
import { ParquetSink } from "./parquet-sink.js";
import type { MadeRun } from "./rollout-run.js";
import type { RunSink } from "./run-sink.js";

/** Rows of samples, or with a packer rows of packed samples. */
export function openRowGroups(
  target: ByteTarget,
  pack: Packer | null,
  options: { rows: number; wide: boolean },
): RunSink {
  const { rows, wide } = options;
  if (pack === null) {
    const columns = (batch: readonly SampleRow[]) => sampleColumns(batch, wide);
    return new RowGroupSink<SampleRow>(target, rows, { add: rowsOf, rest: () => [], columns });
  }
  const columns = (batch: readonly PackedSample[]) => packedColumns(batch, wide);
  return new RowGroupSink<PackedSample>(target, rows, {
    add: (run) => pack.add(run),
    rest: () => pack.finish(),
    columns,
  });
}

interface RowSource<Row> {
  /** Rows that a run finishes. */
  add(run: MadeRun): Row[];
  /** Rows that are left at the end. */
  rest(): Row[];
  columns(rows: readonly Row[]): Column[];
}

/** Rows are gathered until a row group is full, so that groups do not depend on how runs arrive. */
class RowGroupSink<Row> implements RunSink {
  private readonly sink: ParquetSink;
  private pending: Row[] = [];
  private rows = 0;

  constructor(
    target: ByteTarget,
    private readonly rowGroupRows: number,
    private readonly source: RowSource<Row>,
  ) {
    this.sink = new ParquetSink(target, rowGroupRows);
  }

  async write(run: SinkInput): Promise<void> {
    this.pending.push(...this.source.add(madeOnly(run)));
    while (this.pending.length >= this.rowGroupRows) await this.flush();
  }

  private async flush(): Promise<void> {
    const batch = this.pending.splice(0, this.rowGroupRows);
    this.rows += batch.length;
    await this.sink.write(this.source.columns(batch), batch.length);
  }

  async finish(): Promise<WrittenFile & { rows: number }> {
    this.pending.push(...this.source.rest());
    // A file without any row still has its columns.
    if (this.pending.length === 0 && this.rows === 0) await this.flush();
    while (this.pending.length > 0) await this.flush();
    return { ...(await this.sink.finish()), rows: this.rows };
  }

  abort(): void {
    this.sink.abort();
  }
}
