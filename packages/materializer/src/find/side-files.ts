/** Files that say something about runs from outside: rewards, exclusions, turn rewards. What a row must hold, and which run it is about. */
import { TitoError } from "@tito/format";
import type { Value } from "../recipe/expression.js";
import { ID_COLUMNS, KEY_COLUMNS, type Row, readRows } from "./side-rows.js";

/** What a mapping file says about one run. */
export interface Mapped {
  run_id: string | null;
  trial_id: string | null;
  group_id: string | null;
  attempt: number | null;
  scores: ReadonlyMap<string, Value>;
}

export type SideFileKind = "rewards" | "exclusions" | "turn_rewards";

/** A row is about what its first of these names: directories and trajectories first, so that such a row may give new ids. */
const ROW_KEYS = ["trajectory_id", "path", "trial_id", "run_id"] as const;
const ATTEMPT_MAX = 2 ** 31 - 1;

/** The file as an index, null without a file. Errors: `usage` with file and row, `not_found`. */
export function openSideFile(file: string | undefined, kind: SideFileKind): RowIndex | null {
  return file === undefined ? null : new RowIndex(readRows(file), file, kind);
}

/** The key of a row: which column names the run, and its value. Errors: `usage` when no key column is there. */
function rowKey({ where, cells }: Row): string {
  for (const column of ROW_KEYS) {
    const value = cells.get(column);
    if (value !== undefined && value !== null) return `${column}=${String(value)}`;
  }
  const columns = [...cells.keys()].slice(0, 8).join(", ");
  throw new TitoError("usage", `${where}: every row needs one of ${KEY_COLUMNS.join(", ")}`, {
    hint: `this one has ${columns === "" ? "nothing" : `the columns ${columns}`}`,
  });
}

function wholeNumber(row: Row, column: string, max: number): number {
  const value = row.cells.get(column);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= max) return value;
  throw new TitoError("usage", `${row.where}: ${column}: a whole number from 0 is needed, not ${shown(value)}`);
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}

/** What rows of each kind must hold. Errors: `usage` with the row, the column and what is needed. */
const CHECKS: Record<SideFileKind, (row: Row) => void> = {
  rewards(row) {
    if (row.cells.get("turn") != null) {
      throw new TitoError("usage", `${row.where}: rewards of single turns are not rewards of a run`, {
        hint: "give this file as --turn-rewards",
      });
    }
    if (row.cells.get("attempt") != null) wholeNumber(row, "attempt", ATTEMPT_MAX);
  },
  exclusions(row) {
    const reason = row.cells.get("reason");
    if (typeof reason !== "string" || reason.trim() === "")
      throw new TitoError("usage", `${row.where}: reason: a text is needed, not ${shown(reason)}`);
  },
  turn_rewards(row) {
    wholeNumber(row, "turn", Number.MAX_SAFE_INTEGER);
    const reward = row.cells.get("reward");
    if (typeof reward !== "number")
      throw new TitoError("usage", `${row.where}: reward: a number is needed, not ${shown(reward)}`);
  },
};

/** Ids and scores of mapping rows about one run; every column that is no id is a score. */
export function mappedOf(rows: readonly Row[]): Mapped {
  const cells = new Map(rows.flatMap((row) => [...row.cells]));
  const nested = rows.flatMap((row) => {
    const scores = row.cells.get("scores");
    return scores instanceof Map ? [...(scores as ReadonlyMap<string, Value>)] : [];
  });
  const scores = new Map<string, Value>(nested);
  for (const [key, value] of cells) if (!ID_COLUMNS.has(key)) scores.set(key, value as Value);
  const id = (key: string) => (cells.get(key) == null ? null : String(cells.get(key)));
  const attempt = cells.get("attempt");
  return {
    run_id: id("run_id"),
    trial_id: id("trial_id"),
    group_id: id("group_id"),
    attempt: typeof attempt === "number" ? attempt : null,
    scores,
  };
}

/** Rows by key value, for lookup by any id of a run; tells which rows named a run that exists. */
export class RowIndex {
  private readonly rows = new Map<string, Row[]>();
  private readonly unused = new Set<string>();
  private readonly nested = new Map<string, string>();

  /** Errors: `usage` for a row that names no run, lacks what its kind needs, or says another thing about the same than an earlier row. */
  constructor(
    rows: readonly Row[],
    readonly file: string,
    kind: SideFileKind,
  ) {
    for (const row of rows) {
      const key = rowKey(row);
      CHECKS[kind](row);
      const list = this.rows.get(key) ?? [];
      for (const earlier of list) refuseContradiction(earlier, row, { key, kind });
      this.rows.set(key, [...list, row]);
      this.unused.add(key);
      for (const column of row.nested) if (!this.nested.has(column)) this.nested.set(column, row.where);
    }
  }

  /** All rows about a run that has these ids. */
  find(ids: {
    trajectory_id: readonly string[];
    trial_id: readonly string[];
    run_id: string;
    path: readonly string[];
  }): Row[] {
    const values = { ...ids, run_id: [ids.run_id] };
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

  /** What is in the file and has no effect, in words. */
  warnings(): string[] {
    if (this.rows.size === 0) return [`${this.file} holds no row`];
    return [...this.nested].map(
      ([column, where]) => `${where}: ${column} is a list or an object, which no rule can read; it is left out`,
    );
  }
}

/** Two rows about the same run (and turn) must not say different things; several reasons to exclude a run are no contradiction. */
function refuseContradiction(earlier: Row, row: Row, about: { key: string; kind: SideFileKind }): void {
  if (about.kind === "exclusions") return;
  if (about.kind === "turn_rewards" && earlier.cells.get("turn") !== row.cells.get("turn")) return;
  for (const [column, value] of row.cells) {
    const before = earlier.cells.get(column);
    if (before == null || value === null || typeof value === "object" || before === value) continue;
    const said = `${column} ${shown(value)} here and ${shown(before)} in ${earlier.where}`;
    throw new TitoError("usage", `${row.where}: ${about.key} has ${said}`, { hint: "leave one of the rows out" });
  }
}
