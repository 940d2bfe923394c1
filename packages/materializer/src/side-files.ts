/** Files that say something about runs from outside: rewards, exclusions, turn rewards. CSV, JSONL or JSON. */
import { readFileSync, statSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { Value } from "./expression.js";

/** One row: column or key → value. */
export type Row = ReadonlyMap<string, Value | ReadonlyMap<string, Value>>;

/** What a mapping file says about one run. */
export interface Mapped {
  run_id: string | null;
  trial_id: string | null;
  group_id: string | null;
  attempt: number | null;
  scores: ReadonlyMap<string, Value>;
}

const SIDE_FILE_BYTES_MAX = 1 << 30;
/** Columns that name the run a row is about, tried in this order against the run's own ids. */
const KEY_COLUMNS = ["trajectory_id", "trial_id", "run_id", "path"] as const;
/** A row is about what its first of these names: directories and trajectories first, so that such a row may give new ids. */
const ROW_KEYS = ["trajectory_id", "path", "trial_id", "run_id"] as const;
const ID_COLUMNS: ReadonlySet<string> = new Set([...KEY_COLUMNS, "group_id", "attempt", "turn", "reason", "scores"]);

/** Rows of a side file by its suffix. Errors: `usage` with file and line. */
export function readRows(file: string): Row[] {
  const bytes = statSync(file, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) throw new TitoError("not_found", `${file} does not exist`);
  if (bytes > SIDE_FILE_BYTES_MAX) throw new TitoError("usage", `${file} is larger than 1 GiB`);
  return parseRows(readFileSync(file, "utf8"), file);
}

export function parseRows(text: string, file: string): Row[] {
  if (file.endsWith(".csv")) return csvRows(text, file);
  if (file.endsWith(".jsonl") || file.endsWith(".ndjson")) {
    const lines = text.split("\n");
    return lines.flatMap((line, i) =>
      line.trim() === "" ? [] : [rowOf(json(line, `${file}:${i + 1}`), `${file}:${i + 1}`)],
    );
  }
  const value = json(text, file);
  if (Array.isArray(value)) return value.map((each, i) => rowOf(each, `${file}[${i}]`));
  return keyedRows(value, file);
}

/** `{"trial-1": 0.5, "trial-2": {"reward": 1}}`: keys are trial ids. */
function keyedRows(value: unknown, file: string): Row[] {
  if (typeof value !== "object" || value === null)
    throw new TitoError("usage", `${file}: a list or an object is needed`);
  return Object.entries(value).map(([key, inner]) => {
    const body = typeof inner === "object" && inner !== null ? inner : { reward: inner as unknown };
    return new Map([...rowOf(body, `${file}: ${key}`), ["trial_id", key]]);
  });
}

function json(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TitoError("usage", `${where}: not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function rowOf(value: unknown, where: string): Row {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TitoError("usage", `${where}: an object is needed`);
  }
  const row = new Map<string, Value | ReadonlyMap<string, Value>>();
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null || ["string", "number", "boolean"].includes(typeof inner)) row.set(key, inner as Value);
    else if (key === "scores" && typeof inner === "object")
      row.set(key, new Map(rowOf(inner, where)) as Map<string, Value>);
  }
  return row;
}

function csvRows(text: string, file: string): Row[] {
  const lines = parseCsv(text);
  const header = lines[0];
  if (!header) return [];
  return lines.slice(1).map((cells, i) => {
    if (cells.length !== header.length) {
      throw new TitoError("usage", `${file}: row ${i + 2} has ${cells.length} columns, the header ${header.length}`);
    }
    return new Map(cells.map((cell, column) => [header[column]!, csvValue(cell, header[column]!)]));
  });
}

/** Ids stay text; other cells become numbers or booleans when they read as such; an empty cell is null. */
function csvValue(cell: string, column: string): Value {
  if (cell === "") return null;
  if (ID_COLUMNS.has(column) && column !== "attempt" && column !== "turn") return cell;
  const number = Number(cell);
  if (cell.trim() !== "" && Number.isFinite(number)) return number;
  if (/^(true|false)$/i.test(cell)) return cell.toLowerCase() === "true";
  return cell;
}

/** RFC 4180: quoted cells may hold commas, doubled quotes and line breaks. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/y;
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  while (cell.lastIndex < source.length) {
    const match = cell.exec(source);
    if (!match) throw new TitoError("usage", `CSV: a quote is not closed or misplaced in row ${rows.length + 1}`);
    const [, raw, end] = match;
    row.push(raw!.startsWith('"') ? raw!.slice(1, -1).replaceAll('""', '"') : raw!);
    if (end === ",") {
      if (cell.lastIndex === source.length) row.push("");
      else continue;
    }
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  return rows;
}

/** The key of a row: which column names the run, and its value. Errors: `usage` when no key column is there. */
function rowKey(row: Row, file: string): { column: (typeof KEY_COLUMNS)[number]; value: string } {
  for (const column of ROW_KEYS) {
    const value = row.get(column);
    if (value !== undefined && value !== null) return { column, value: String(value) };
  }
  throw new TitoError("usage", `${file}: every row needs one of ${KEY_COLUMNS.join(", ")}`);
}

/** Ids and scores of a mapping row; every other column is a score. */
export function mappedOf(row: Row): Mapped {
  const nested = row.get("scores");
  const scores = new Map<string, Value>(nested instanceof Map ? nested : []);
  for (const [key, value] of row) if (!ID_COLUMNS.has(key)) scores.set(key, value as Value);
  const id = (key: string) => (row.get(key) === undefined || row.get(key) === null ? null : String(row.get(key)));
  const attempt = row.get("attempt");
  return {
    run_id: id("run_id"),
    trial_id: id("trial_id"),
    group_id: id("group_id"),
    attempt: typeof attempt === "number" ? attempt : null,
    scores,
  };
}

/** Rows by key value, for lookup by any id of a run; `used` tells which rows named a run that exists. */
export class RowIndex {
  private readonly rows = new Map<string, Row[]>();
  private readonly unused = new Set<string>();

  constructor(
    rows: readonly Row[],
    readonly file: string,
  ) {
    for (const row of rows) {
      const { column, value } = rowKey(row, file);
      const key = `${column}=${value}`;
      const list = this.rows.get(key);
      if (list) list.push(row);
      else this.rows.set(key, [row]);
      this.unused.add(key);
    }
  }

  /** All rows about a run that has these ids. */
  find(ids: { trajectory_id: readonly string[]; trial_id: string; run_id: string; path: readonly string[] }): Row[] {
    const values = { ...ids, trial_id: [ids.trial_id], run_id: [ids.run_id] };
    const found: Row[] = [];
    for (const column of KEY_COLUMNS) {
      for (const value of values[column]) {
        const key = `${column}=${value}`;
        const rows = this.rows.get(key);
        if (!rows) continue;
        this.unused.delete(key);
        found.push(...rows);
      }
    }
    return found;
  }

  /** Keys that named no run. */
  unmatched(): string[] {
    return [...this.unused];
  }
}
