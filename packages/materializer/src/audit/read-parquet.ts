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
  const value: unknown = column.get(row);
  if (typeof value !== "object" || value === null) return value;
  const list = value as Vector;
  const inner = list.toArray() as unknown;
  if (ArrayBuffer.isView(inner)) return inner;
  return [...(inner as Iterable<unknown>)].map((each) =>
    typeof each === "object" && each !== null && "toJSON" in each ? (each as { toJSON(): unknown }).toJSON() : each,
  );
}

function runRow(columns: ReadonlyMap<string, unknown>): unknown {
  const get = (name: string) => columns.get(name);
  const json = (name: string): unknown => JSON.parse(String(get(name)));
  const perAction = get("advantage_per_action") as ArrayLike<number>;
  const turnRewards = get("turn_rewards") as ArrayLike<number>;
  const sample = {
    ...Object.fromEntries(columns),
    advantage: perAction.length > 0 ? Array.from(perAction) : get("advantage"),
  };
  return {
    ...Object.fromEntries(columns),
    weight: get("run_weight"),
    coverage: {
      captured_tokens: get("captured_tokens"),
      eligible_tokens: get("eligible_tokens"),
      trained_tokens: get("run_trained_tokens"),
      masked: json("masked"),
    },
    outside: json("outside"),
    scores: json("scores"),
    metadata: json("metadata"),
    evidence: json("evidence"),
    turn_rewards: turnRewards.length > 0 ? Array.from(turnRewards) : null,
    task: { id: get("task_id") },
    samples: get("sample_index") === null ? [] : [sample],
  };
}

function packedRow(columns: ReadonlyMap<string, unknown>): unknown {
  const parts = columns.get("parts") as { advantage: number | null; advantage_per_action: ArrayLike<number> }[];
  const read = parts.map(({ advantage_per_action, ...part }) => ({
    ...part,
    advantage: advantage_per_action.length > 0 ? Array.from(advantage_per_action) : part.advantage,
  }));
  return { ...Object.fromEntries(columns), parts: read };
}
