/** Streams Arrow batches into a Parquet file: zstd, one row group a batch, no statistics over tokens. I/O edge. */
import { makeData, RecordBatch, Schema, Struct, Table, tableToIPC } from "apache-arrow";
import {
  Compression,
  EnabledStatistics,
  transformParquetStream,
  Table as WasmTable,
  type WriterProperties,
  WriterPropertiesBuilder,
} from "parquet-wasm";
import type { ByteTarget, WrittenFile } from "./byte-target.js";
import type { Column } from "./columns.js";

/** Columns that one filters by, so that their row groups' bounds are worth writing. */
const FILTERED = ["run_id", "group_id", "task_id", "reward", "weight", "excluded", "termination"];

/**
 * Dictionaries cost three times the time and save nothing on ids that rarely repeat; bounds of token columns say nothing;
 * large pages and batches halve the writer's time.
 */
function writerProperties(rowGroupRows: number): WriterProperties {
  const builder = new WriterPropertiesBuilder()
    .setCompression(Compression.ZSTD)
    .setDictionaryEnabled(false)
    .setStatisticsEnabled(EnabledStatistics.None)
    .setWriteBatchSize(1 << 18)
    .setDataPageSizeLimit(1 << 22)
    .setMaxRowGroupSize(rowGroupRows)
    .setCreatedBy("tito");
  return FILTERED.reduce(
    (each, name) => each.setColumnStatisticsEnabled(name, EnabledStatistics.Chunk),
    builder,
  ).build();
}

/** Writes row groups as they come; memory is one batch here and one in the writer. */
export class ParquetSink {
  private readonly input = new TransformStream<unknown, unknown>(undefined, { highWaterMark: 1 }, { highWaterMark: 1 });
  private readonly writer = this.input.writable.getWriter();
  private readonly pumped: Promise<void>;

  constructor(
    private readonly target: ByteTarget,
    rowGroupRows: number,
  ) {
    const properties = writerProperties(rowGroupRows);
    this.pumped = this.pump(transformParquetStream(this.input.readable as never, properties));
    // A failed write shows at the next `write` or at `finish`; until then it is not an unhandled rejection.
    this.pumped.catch(() => undefined);
  }

  private async pump(output: Promise<ReadableStream>): Promise<void> {
    const reader = ((await output) as ReadableStream<Uint8Array>).getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) await this.target.write(next.value);
  }

  /** Appends one row group. */
  async write(columns: readonly Column[], rows: number): Promise<void> {
    const fields = columns.map((column) => column.field);
    const data = makeData({
      type: new Struct(fields),
      length: rows,
      nullCount: 0,
      children: columns.map((column) => column.data),
    });
    const batch = new RecordBatch(new Schema(fields), data);
    const table = WasmTable.fromIPCStream(tableToIPC(new Table([batch]), "stream"));
    for (const each of table.recordBatches()) await Promise.race([this.writer.write(each), this.pumped]);
    table.free();
  }

  async finish(): Promise<WrittenFile> {
    await Promise.race([this.writer.close(), this.pumped]);
    await this.pumped;
    return this.target.finish();
  }

  abort(): void {
    this.writer.abort("aborted").catch(() => undefined);
    this.target.abort();
  }
}
