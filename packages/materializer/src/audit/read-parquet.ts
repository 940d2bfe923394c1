/** Reads a Parquet output back as the records that JSONL holds. I/O edge. */
import { openAsBlob } from "node:fs";
import { TitoError } from "@tito/format";
import { tableFromIPC, type Vector } from "apache-arrow";
import { ParquetFile } from "parquet-wasm";

/** One row group at a time. */
export async function* parquetRows(path: string): AsyncGenerator<unknown> {
  let file: ParquetFile;
  try {
    file = await ParquetFile.fromFile(await openAsBlob(path));
  } catch (error) {
    throw new TitoError("damaged", `${path}: not a Parquet file that can be read: ${String(error)}`);
  }
  const groups = file.metadata().numRowGroups();
  for (let group = 0; group < groups; group += 1) {
    const table = tableFromIPC((await file.read({ rowGroups: [group] })).intoIPCStream());
    for (let row = 0; row < table.numRows; row += 1) {
      const columns = new Map(table.schema.fields.map((field, i) => [field.name, cell(table.getChildAt(i)!, row)]));
      yield columns.has("parts") ? packedRow(columns) : runRow(columns);
    }
  }
}

function cell(column: Vector, row: number): unknown {
  return plain(column.get(row));
}

/** Lists of numbers stay typed arrays; records and lists of them become plain ones, int64 a number. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return value;
  if ("toArray" in value && typeof value.toArray === "function") {
    const inner = (value as Vector).toArray() as unknown;
    if (ArrayBuffer.isView(inner) && !(inner instanceof BigInt64Array)) return inner;
    return [...(inner as Iterable<unknown>)].map(plain);
  }
  const record = (value as { toJSON(): Record<string, unknown> }).toJSON();
  return Object.fromEntries(Object.entries(record).map(([key, each]) => [key, plain(each)]));
}

function runRow(columns: ReadonlyMap<string, unknown>): unknown {
  const get = (name: string) => columns.get(name);
  const records = (name: string) => recordsOf(get(name));
  const turnRewards = get("turn_rewards") as ArrayLike<number>;
  const perAction = Array.from(get("advantage_per_action") as ArrayLike<number>);
  const sample = { ...Object.fromEntries(columns), advantage_per_action: perAction, turns: get("sample_turns") };
  return {
    ...Object.fromEntries(columns),
    weight: get("run_weight"),
    coverage: {
      captured_tokens: get("captured_tokens"),
      eligible_tokens: get("eligible_tokens"),
      trained_tokens: get("run_trained_tokens"),
      masked: pairs(records("masked"), "reason", (each) => each.tokens),
    },
    outside: records("outside"),
    scores: pairs(records("scores"), "name", scoreOf),
    metadata: pairs(records("metadata"), "key", (each) => each.value),
    evidence: records("evidence"),
    turn_rewards: turnRewards.length > 0 ? Array.from(turnRewards) : null,
    task: { id: get("task_id") },
    samples: get("sample_index") === null ? [] : [sample],
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** A list of records; earlier versions wrote it as JSON text. */
function recordsOf(value: unknown): readonly Fields[] | Fields {
  return (typeof value === "string" ? JSON.parse(value) : value) as readonly Fields[] | Fields;
}

function pairs(value: readonly Fields[] | Fields, key: string, of: (each: Fields) => unknown): Fields {
  if (!Array.isArray(value)) return value as Fields;
  return Object.fromEntries(value.map((each: Fields) => [String(each[key]), of(each)]));
}

function scoreOf({ number, text }: Fields): unknown {
  if (number === null) return text;
  return text === null ? number : text === "true";
}

function packedRow(columns: ReadonlyMap<string, unknown>): unknown {
  const parts = columns.get("parts") as { advantage_per_action: ArrayLike<number> }[];
  const read = parts.map((part) => ({ ...part, advantage_per_action: Array.from(part.advantage_per_action) }));
  return { ...Object.fromEntries(columns), parts: read };
}
