/** Reads outputs of any format back, row by row. The Parquet reader is loaded with its first row. I/O edge. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { TitoError } from "@tito/format";
import { UnpackrStream } from "msgpackr";
import { z } from "zod";
import { TERMINATIONS } from "../recipe/reasons.js";
import type { Format } from "../write/encoded-run.js";
import { packedSampleSchema } from "../write/pack.js";
import { coverageSchema, sampleTurnSchema, spanSchema } from "../write/rollout-run.js";

const numbers = z.custom<ArrayLike<number>>((value) => Array.isArray(value) || ArrayBuffer.isView(value));

/** What a reader needs of a run, whatever the format. */
const readRunSchema = z.object({
  run_id: z.string(),
  trial_id: z.string(),
  attempt: z.number(),
  group_id: z.string(),
  reward: z.number().nullable(),
  excluded: z.string().nullable(),
  weight: z.number(),
  coverage: coverageSchema,
  outside: z.array(z.object({ reason: z.string(), tokens: z.number() })),
  scores: z.record(z.string(), z.union([z.number(), z.boolean(), z.string(), z.null()])),
  metadata: z.record(z.string(), z.string()),
  reward_rule: z.string(),
  turn_rewards: z.array(z.number()).nullable(),
  credit_rule: z.enum(["none", "grpo", "grpo-no-std", "rloo", "batch-baseline"]),
  termination: z.enum(TERMINATIONS),
  turns: z.number(),
  task: z.object({ id: z.string().nullable() }),
  trajectory_ids: z.array(z.string()),
  evidence: z.array(z.object({ path: z.string(), bytes: z.number(), sha256: z.string() })),
});
export type ReadRun = z.infer<typeof readRunSchema>;

/** Earlier versions gave either the number or the list in `advantage`. */
const advantages = {
  advantage: z.union([z.number(), z.array(z.number()), z.null()]),
  advantage_per_action: z.array(z.number()).optional(),
};
type Advantages = z.infer<z.ZodObject<typeof advantages>>;

/** One advantage, one for each action span, or null. */
export const advantageOf = ({
  advantage,
  advantage_per_action: list,
}: Advantages): number | readonly number[] | null => (list !== undefined && list.length > 0 ? list : advantage);

const readSampleSchema = z.object({
  sample_index: z.number(),
  trajectory_id: z.string(),
  tokens: numbers,
  loss_mask: numbers,
  logprobs: numbers,
  ...advantages,
  weight: z.number(),
  trained_tokens: z.number(),
  spans: z.array(spanSchema),
  /** How its turns were sampled; earlier versions did not say. */
  turns: z.array(sampleTurnSchema).optional(),
});
export type ReadSample = z.infer<typeof readSampleSchema>;

const readPackedSchema = z.object({
  ...packedSampleSchema.shape,
  tokens: numbers,
  loss_mask: numbers,
  logprobs: numbers,
  position_ids: numbers,
  parts: z.array(z.object({ ...packedSampleSchema.shape.parts.element.shape, ...advantages })),
});
export type ReadPacked = z.infer<typeof readPackedSchema>;

/** A run with one of its samples (null: it has none), or a packed row. Rows of a run follow each other. */
export type OutputRow = { run: ReadRun; sample: ReadSample | null } | { packed: ReadPacked };

/** All rows of one output file. Throws `damaged` with the row when one does not have the schema. */
export async function* readOutput(path: string, format: Format): AsyncGenerator<OutputRow> {
  let row = 0;
  for await (const value of format === "parquet"
    ? parquetRows(path)
    : format === "jsonl"
      ? jsonlRows(path)
      : msgpackRows(path)) {
    row += 1;
    yield* rowsOf(value, `${path} row ${row}`);
  }
}

function* rowsOf(value: unknown, where: string): Generator<OutputRow> {
  if (typeof value === "object" && value !== null && "parts" in value) {
    yield { packed: checked(readPackedSchema, value, where) };
    return;
  }
  const run = checked(readRunSchema, value, where);
  const { samples } = checked(z.object({ samples: z.array(readSampleSchema) }), value, where);
  if (samples.length === 0) yield { run, sample: null };
  for (const sample of samples) yield { run, sample };
}

function checked<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  throw new TitoError("damaged", `${where}: ${issue.path.join(".")}: ${issue.message}`);
}

async function* jsonlRows(path: string): AsyncGenerator<unknown> {
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    if (line === "") continue;
    try {
      yield JSON.parse(line);
    } catch (error) {
      throw new TitoError("damaged", `${path}: a line is not JSON: ${error instanceof Error ? error.message : ""}`);
    }
  }
}

async function* parquetRows(path: string): AsyncGenerator<unknown> {
  yield* (await import("./read-parquet.js")).parquetRows(path);
}

async function* msgpackRows(path: string): AsyncGenerator<unknown> {
  const stream = createReadStream(path).pipe(new UnpackrStream({ useRecords: false }));
  for await (const value of stream) yield unpackArrays(value);
}

/** `{dtype, shape, data}` back to typed arrays, wherever they are. */
function unpackArrays(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpackArrays);
  if (typeof value !== "object" || value === null) return value;
  if ("dtype" in value && "data" in value && value.data instanceof Uint8Array)
    return typedArray(String(value.dtype), value.data);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, unpackArrays(inner)]));
}

function typedArray(dtype: string, data: Uint8Array): ArrayLike<number> {
  // A copy of its own: a Buffer is a view into a shared pool, at any alignment.
  const { buffer } = Uint8Array.from(data);
  if (dtype === "<i4") return new Int32Array(buffer);
  if (dtype === "<f4") return new Float32Array(buffer);
  return dtype === "<f8" ? new Float64Array(buffer) : new Uint8Array(buffer);
}
