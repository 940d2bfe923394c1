/** Rows of a side file: CSV, JSONL or JSON become the same records. What they mean is in `side-files.ts`. */
import { readFileSync, statSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { Value } from "../recipe/expression.js";
import { parseJsonText } from "../recipe/json-text.js";

type Cell = Value | ReadonlyMap<string, Value>;

/** One row: where it stands, for messages, and its column or key → value. */
export interface Row {
  where: string;
  cells: ReadonlyMap<string, Cell>;
  /** Columns whose values are lists or objects, which no rule can read. */
  nested: readonly string[];
}

/** Columns that name the run a row is about, tried in this order against the run's own ids. */
export const KEY_COLUMNS = ["trajectory_id", "trial_id", "run_id", "path"] as const;
/** Columns that are no scores. */
export const ID_COLUMNS: ReadonlySet<string> = new Set([
  ...KEY_COLUMNS,
  "group_id",
  "attempt",
  "turn",
  "reason",
  "scores",
]);
const NUMBER_COLUMNS: ReadonlySet<string> = new Set(["attempt", "turn"]);

const SIDE_FILE_BYTES_MAX = 1 << 30;

/** Rows of a side file by its suffix. Errors: `usage` with file and place, `not_found`. */
export function readRows(file: string): Row[] {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) throw new TitoError("not_found", `${file} does not exist`);
  if (!stat.isFile()) throw new TitoError("usage", `${file} is not a file`, { hint: "give a CSV, JSONL or JSON file" });
  if (stat.size > SIDE_FILE_BYTES_MAX) throw new TitoError("usage", `${file} is larger than 1 GiB`);
  return parseRows(readFileSync(file, "utf8"), file);
}

export function parseRows(text: string, file: string): Row[] {
  if (/\.csv$/i.test(file)) return csvRows(text, file);
  if (/\.(jsonl|ndjson)$/i.test(file)) {
    const lines = text.split("\n");
    return lines.flatMap((line, i) =>
      line.trim() === "" ? [] : [rowOf(json(line, `${file}:${i + 1}`), `${file}:${i + 1}`)],
    );
  }
  const value = json(text, file);
  if (Array.isArray(value)) return value.map((each, i) => rowOf(each, `${file}[${i}]`));
  return keyedRows(value, file);
}

/** `{"trial-1": 0.5, "trial-2": {"reward": 1}}`: keys are trial ids; a text is the reason of an exclusion. An object that names a run is one row. */
function keyedRows(value: unknown, file: string): Row[] {
  if (typeof value !== "object" || value === null)
    throw new TitoError("usage", `${file}: a list or an object is needed`);
  if (KEY_COLUMNS.some((key) => Object.hasOwn(value, key))) return [rowOf(value, file)];
  return Object.entries(value).map(([key, inner]) => {
    const plain = typeof inner === "string" ? { reward: inner, reason: inner } : { reward: inner as unknown };
    const row = rowOf(typeof inner === "object" && inner !== null ? inner : plain, `${file}: ${key}`);
    return { ...row, cells: new Map([...row.cells, ["trial_id", key]]) };
  });
}

function json(text: string, where: string): unknown {
  try {
    return parseJsonText(text);
  } catch (error) {
    throw new TitoError(
      "usage",
      `${where}: not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
      {
        hint: "the suffix says what is read: .csv, .jsonl or .ndjson (an object a line), anything else JSON",
      },
    );
  }
}

function rowOf(value: unknown, where: string): Row {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TitoError("usage", `${where}: an object is needed`);
  }
  const cells = new Map<string, Cell>();
  const nested: string[] = [];
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null || ["string", "number", "boolean"].includes(typeof inner)) cells.set(key, inner as Value);
    else if (key === "scores" && typeof inner === "object" && !Array.isArray(inner)) {
      const scores = rowOf(inner, where);
      cells.set(key, scores.cells as Map<string, Value>);
      nested.push(...scores.nested);
    } else nested.push(key);
  }
  return { where, cells, nested };
}

function csvRows(text: string, file: string): Row[] {
  const [first, ...rest] = parseCsv(text, file);
  if (!first) return [];
  const header = first.map((name) => name.trim());
  const twice = header.find((name, i) => header.indexOf(name) !== i);
  if (twice !== undefined) throw new TitoError("usage", `${file}: the header names the column "${twice}" twice`);
  return rest.map((cells, i) => {
    const where = `${file}: row ${i + 2}`;
    if (cells.length !== header.length) {
      throw new TitoError("usage", `${where} has ${cells.length} columns, the header ${header.length}`);
    }
    return { where, cells: new Map(cells.map((cell, at) => [header[at]!, csvValue(cell, header[at]!)])), nested: [] };
  });
}

/** Ids stay text; other cells become numbers or booleans when they read as such; an empty cell is null. */
function csvValue(cell: string, column: string): Value {
  if (cell.trim() === "") return null;
  if (ID_COLUMNS.has(column) && !NUMBER_COLUMNS.has(column)) return cell.trim();
  const number = Number(cell);
  if (Number.isFinite(number)) return number;
  if (/^\s*(true|false)\s*$/i.test(cell)) return cell.trim().toLowerCase() === "true";
  return cell;
}

/** RFC 4180: quoted cells may hold commas, doubled quotes and line breaks. */
export function parseCsv(text: string, file: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|\n|\r|$)/y;
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  while (cell.lastIndex < source.length) {
    const match = cell.exec(source);
    if (!match) throw new TitoError("usage", `${file}: a quote is not closed or misplaced in row ${rows.length + 1}`);
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
