/** Stage "write" for Parquet: rows become row groups, cut by rows and tokens. I/O edge. */
import type { ByteTarget, WrittenFile } from "./byte-target.js";
import type { Column } from "./columns.js";
import { madeOnly, type SinkInput } from "./encoded-run.js";
import type { PackedSample, Packer } from "./pack.js";
import { packedColumns, rowsOf, type SampleRow, sampleColumns } from "./parquet-rows.js";
import { ParquetSink } from "./parquet-sink.js";
import type { MadeRun } from "./rollout-run.js";
import type { RunSink } from "./run-sink.js";

/** A row group ends with the row that reaches one of them. */
interface RowGroupBounds {
  rows: number;
  tokens: number;
}

/** Rows of samples, or with a packer rows of packed samples. */
export function openRowGroups(
  target: ByteTarget,
  pack: Packer | null,
  options: RowGroupBounds & { wide: boolean },
): RunSink {
  const { wide } = options;
  if (pack === null) {
    const columns = (batch: readonly SampleRow[]) => sampleColumns(batch, wide);
    const tokens = ({ sample }: SampleRow) => sample?.tokens.length ?? 0;
    return new RowGroupSink<SampleRow>(target, options, { add: rowsOf, rest: () => [], columns, tokens });
  }
  const columns = (batch: readonly PackedSample[]) => packedColumns(batch, wide);
  return new RowGroupSink<PackedSample>(target, options, {
    add: (run) => pack.add(run),
    rest: () => pack.finish(),
    columns,
    tokens: (row) => row.tokens.length,
  });
}

interface RowSource<Row> {
  /** Rows that a run finishes. */
  add(run: MadeRun): Row[];
  /** Rows that are left at the end. */
  rest(): Row[];
  tokens(row: Row): number;
  columns(rows: readonly Row[]): Column[];
}

/** Rows are gathered until a row group is full, so that groups do not depend on how runs arrive. */
class RowGroupSink<Row> implements RunSink {
  private readonly sink: ParquetSink;
  private pending: Row[] = [];
  private pendingTokens = 0;
  private rows = 0;

  constructor(
    target: ByteTarget,
    private readonly bounds: RowGroupBounds,
    private readonly source: RowSource<Row>,
  ) {
    this.sink = new ParquetSink(target, bounds.rows);
  }

  async write(run: SinkInput): Promise<void> {
    for (const row of this.source.add(madeOnly(run))) await this.append(row);
  }

  private async append(row: Row): Promise<void> {
    this.pending.push(row);
    this.pendingTokens += this.source.tokens(row);
    if (this.pending.length >= this.bounds.rows || this.pendingTokens >= this.bounds.tokens) await this.flush();
  }

  private async flush(): Promise<void> {
    const batch = this.pending;
    this.pending = [];
    this.pendingTokens = 0;
    this.rows += batch.length;
    await this.sink.write(this.source.columns(batch), batch.length);
  }

  async finish(): Promise<WrittenFile & { rows: number }> {
    for (const row of this.source.rest()) await this.append(row);
    // A file without any row still has its columns.
    if (this.pending.length > 0 || this.rows === 0) await this.flush();
    return { ...(await this.sink.finish()), rows: this.rows };
  }

  abort(): void {
    this.sink.abort();
  }
}
