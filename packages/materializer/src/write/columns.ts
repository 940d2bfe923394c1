/** Arrow columns from plain values, without a loop over tokens: what both Parquet schemas are made of. */
import { TitoError } from "@tito/format";
import {
  type Data,
  type DataType,
  Field,
  Float32,
  Float64,
  Int8,
  Int32,
  Int64,
  List,
  makeData,
  Struct,
  Utf8,
} from "apache-arrow";

/** A named column of one batch. */
export interface Column {
  field: Field;
  data: Data;
}

/** Offsets and whole numbers of these columns are int32. */
const INT32_MAX = 2 ** 31 - 1;

function tooLarge(what: string, hint: string): TitoError {
  return new TitoError("format_limit", `Parquet: ${what} is more than an int32 column holds`, { hint });
}

function column(name: string, data: Data, nullable: boolean): Column {
  return { field: new Field(name, data.type, nullable), data };
}

export function textColumn(name: string, values: readonly (string | null)[]): Column {
  return column(name, textData(values), true);
}

export function intColumn(name: string, values: readonly (number | null)[]): Column {
  const data = Int32Array.from(values, (value) => value ?? 0);
  const wrong = values.findIndex((value, i) => value !== null && data[i] !== value);
  if (wrong >= 0) throw tooLarge(`${name} ${values[wrong]}`, "write JSONL or msgpack");
  return column(name, makeData({ type: new Int32(), length: values.length, data, ...nulls(values) }), true);
}

export function doubleColumn(name: string, values: readonly (number | null)[]): Column {
  const data = Float64Array.from(values, (value) => value ?? 0);
  return column(name, makeData({ type: new Float64(), length: values.length, data, ...nulls(values) }), true);
}

/** Whole numbers up to 2^53 as int64: weight versions count further than an int32 does. */
export function longColumn(name: string, values: readonly (number | null)[]): Column {
  const data = BigInt64Array.from(values, (value) => BigInt(value ?? 0));
  return column(name, makeData({ type: new Int64(), length: values.length, data, ...nulls(values) }), true);
}

/** How a field of a record becomes a column of its own. */
type Cell<T> =
  | { text: (record: T) => string | null }
  | { int: (record: T) => number | null }
  | { long: (record: T) => number | null }
  | { double: (record: T) => number | null }
  | { records: (record: T) => readonly unknown[]; of: (all: readonly never[]) => Column[] };

/** The columns of records with these fields, in their order. */
export function fieldsOf<T>(cells: Record<string, Cell<T>>): (records: readonly T[]) => Column[] {
  return (records) => Object.entries(cells).map(([name, cell]) => cellColumn(name, cell, records));
}

function cellColumn<T>(name: string, cell: Cell<T>, records: readonly T[]): Column {
  if ("text" in cell) return textColumn(name, records.map(cell.text));
  if ("int" in cell) return intColumn(name, records.map(cell.int));
  if ("long" in cell) return longColumn(name, records.map(cell.long));
  if ("double" in cell) return doubleColumn(name, records.map(cell.double));
  return recordsColumn(name, records.map(cell.records) as never[][], cell.of);
}

type Numbers = Int32Array | Uint8Array | Float32Array | Float64Array;

/** One list of numbers a row. Bytes become int8, so that a loss mask is one byte a token; `wide` makes floats float64. */
export function numbersColumn(
  name: string,
  type: "int32" | "int8" | "float32" | "float64",
  rows: readonly Numbers[],
): Column {
  const total = rows.reduce((sum, row) => sum + row.length, 0);
  if (total > INT32_MAX) throw tooLarge(`${name}: a row group of ${total} values`, "lower output.row_group_tokens");
  const values = allocate(type, total);
  let at = 0;
  for (const row of rows) {
    values.data.set(row, at);
    at += row.length;
  }
  const child = makeData({ type: values.type, length: total, nullCount: 0, data: values.data } as never) as Data;
  return column(
    name,
    listData(
      rows.map((row) => row.length),
      child,
    ),
    false,
  );
}

function allocate(type: "int32" | "int8" | "float32" | "float64", length: number) {
  if (type === "int32") return { type: new Int32(), data: new Int32Array(length) };
  if (type === "int8") return { type: new Int8(), data: new Int8Array(length) };
  return type === "float32"
    ? { type: new Float32(), data: new Float32Array(length) }
    : { type: new Float64(), data: new Float64Array(length) };
}

export function textListColumn(name: string, rows: readonly (readonly string[])[]): Column {
  return column(
    name,
    listData(
      rows.map((row) => row.length),
      textData(rows.flat()),
    ),
    false,
  );
}

/** One list of records a row; every record has the given fields. */
export function recordsColumn<T>(
  name: string,
  rows: readonly (readonly T[])[],
  fields: (all: readonly T[]) => Column[],
): Column {
  const all = rows.flat();
  const columns = fields(all);
  const type = new Struct(columns.map((each) => each.field));
  const child = makeData({ type, length: all.length, nullCount: 0, children: columns.map((each) => each.data) });
  return column(
    name,
    listData(
      rows.map((row) => row.length),
      child,
    ),
    false,
  );
}

function textData(values: readonly (string | null)[]): Data<Utf8> {
  const valueOffsets = new Int32Array(values.length + 1);
  const parts = values.map((value) => Buffer.from(value ?? "", "utf8"));
  for (const [i, part] of parts.entries()) valueOffsets[i + 1] = valueOffsets[i]! + part.length;
  return makeData({
    type: new Utf8(),
    length: values.length,
    valueOffsets,
    data: Buffer.concat(parts),
    ...nulls(values),
  });
}

function listData(lengths: readonly number[], child: Data): Data {
  const valueOffsets = new Int32Array(lengths.length + 1);
  for (const [i, length] of lengths.entries()) valueOffsets[i + 1] = valueOffsets[i]! + length;
  const type = new List(new Field("element", child.type as DataType, false));
  return makeData({ type, length: lengths.length, nullCount: 0, valueOffsets, child });
}

function nulls(values: readonly unknown[]): { nullCount: number; nullBitmap?: Uint8Array } {
  const nullCount = values.filter((value) => value === null).length;
  if (nullCount === 0) return { nullCount };
  const nullBitmap = new Uint8Array(Math.ceil(values.length / 8));
  for (const [i, value] of values.entries()) if (value !== null) nullBitmap[i >> 3]! |= 1 << (i & 7);
  return { nullCount, nullBitmap };
}
