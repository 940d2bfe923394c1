/** Columns of the two Parquet outputs: one row a sample with the run's columns repeated, or one row a packed sample. */

import { canonicalJson } from "../recipe/canonical-json.js";
import {
  type Column,
  doubleColumn,
  fieldsOf,
  intColumn,
  longColumn,
  numbersColumn,
  recordsColumn,
  textColumn,
  textListColumn,
} from "./columns.js";
import type { PackedSample } from "./pack.js";
import type { MadeRun, MadeSample, RunHead, Span } from "./rollout-run.js";

/** A row: a run, and one of its samples or null when it has none. */
export interface SampleRow {
  head: RunHead;
  sample: MadeSample | null;
}

export function rowsOf(run: MadeRun): SampleRow[] {
  if (run.samples.length === 0) return [{ head: run.head, sample: null }];
  return run.samples.map((sample) => ({ head: run.head, sample }));
}

type SampleTurn = MadeSample["turns"][number];

const SPAN_FIELDS = fieldsOf<Span>({
  start: { int: (span) => span.start },
  end: { int: (span) => span.end },
  kind: { text: (span) => span.kind },
  turn: { int: (span) => span.turn },
  reason: { text: (span) => span.reason },
});

const VERSION_FIELDS = fieldsOf<SampleTurn["weight_versions"][number]>({
  start: { int: (span) => span.start },
  end: { int: (span) => span.end },
  version: { text: (span) => span.version },
  number: { long: (span) => span.number },
});

const TURN_FIELDS = fieldsOf<SampleTurn>({
  turn: { int: (turn) => turn.turn },
  lane: { text: (turn) => turn.lane },
  finish_reason: { text: (turn) => turn.finish_reason },
  logprob_mode: { text: (turn) => turn.logprob_mode },
  temperature: { double: (turn) => turn.temperature },
  top_p: { double: (turn) => turn.top_p },
  top_k: { double: (turn) => turn.top_k },
  min_p: { double: (turn) => turn.min_p },
  presence_penalty: { double: (turn) => turn.presence_penalty },
  frequency_penalty: { double: (turn) => turn.frequency_penalty },
  repetition_penalty: { double: (turn) => turn.repetition_penalty },
  weight_versions: { records: (turn) => turn.weight_versions, of: VERSION_FIELDS },
});

const PAIR_FIELDS = fieldsOf<[string, string]>({
  key: { text: ([key]) => key },
  value: { text: ([, value]) => value },
});
const MASKED_FIELDS = fieldsOf<[string, number]>({
  reason: { text: ([reason]) => reason },
  tokens: { int: ([, tokens]) => tokens },
});
/** A number has `number`, a text has `text`, a boolean both (1 and "true"), null neither. */
const SCORE_FIELDS = fieldsOf<[string, RunHead["scores"][string]]>({
  name: { text: ([name]) => name },
  number: { double: ([, score]) => (typeof score === "number" || typeof score === "boolean" ? Number(score) : null) },
  text: { text: ([, score]) => (typeof score === "string" || typeof score === "boolean" ? String(score) : null) },
});
const OUTSIDE_FIELDS = fieldsOf<RunHead["outside"][number]>({
  trajectory_id: { text: (each) => each.trajectory_id },
  turn: { int: (each) => each.turn },
  tokens: { int: (each) => each.tokens },
  reason: { text: (each) => each.reason },
});
const EVIDENCE_FIELDS = fieldsOf<RunHead["evidence"][number]>({
  path: { text: (file) => file.path },
  bytes: { long: (file) => file.bytes },
  sha256: { text: (file) => file.sha256 },
});

/** In an order that does not depend on how the record was made. */
function sortedEntries<T>(record: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

const NO_IDS = new Int32Array(0);
const NO_MASK = new Uint8Array(0);
const NO_LOGPROBS = new Float64Array(0);

export function sampleColumns(rows: readonly SampleRow[], wide: boolean): Column[] {
  return [
    ...runColumns(rows.map((row) => row.head)),
    ...ownColumns(
      rows.map((row) => row.sample),
      wide,
    ),
  ];
}

function runColumns(heads: readonly RunHead[]): Column[] {
  const text = (name: string, of: (head: RunHead) => string | null) => textColumn(name, heads.map(of));
  const int = (name: string, of: (head: RunHead) => number | null) => intColumn(name, heads.map(of));
  const double = (name: string, of: (head: RunHead) => number | null) => doubleColumn(name, heads.map(of));
  const records = <T>(name: string, of: (head: RunHead) => readonly T[], fields: (all: readonly T[]) => Column[]) =>
    recordsColumn(name, heads.map(of), fields);
  const texts = (name: string, of: (head: RunHead) => readonly string[]) => textListColumn(name, heads.map(of));
  return [
    text("schema", (head) => head.schema),
    text("run_id", (head) => head.run_id),
    text("group_id", (head) => head.group_id),
    text("trial_id", (head) => head.trial_id),
    int("attempt", (head) => head.attempt),
    texts("trajectory_ids", (head) => head.trajectory_ids),
    text("model", (head) => head.model),
    text("engine_kind", (head) => head.engine?.kind ?? null),
    text("engine_version", (head) => head.engine?.version ?? null),
    text("prompt_mode", (head) => head.prompt_mode),
    text("renderer_contract", (head) => head.renderer_contract),
    texts("weight_versions", (head) => head.weight_versions),
    text("task_id", (head) => head.task.id),
    text("task_source", (head) => head.task.source),
    text("instruction_sha256", (head) => head.task.instruction_sha256),
    records("metadata", (head) => sortedEntries(head.metadata), PAIR_FIELDS),
    text("environment_kind", (head) => head.environment.kind),
    text("environment_image", (head) => head.environment.image),
    text("sandbox_id", (head) => head.environment.sandbox_id),
    records("scores", (head) => sortedEntries(head.scores), SCORE_FIELDS),
    text("scores_source", (head) => head.scores_source),
    text("reward_rule", (head) => head.reward_rule),
    double("reward", (head) => head.reward),
    numbersColumn(
      "turn_rewards",
      "float64",
      heads.map((head) => Float64Array.from(head.turn_rewards ?? [])),
    ),
    text("credit_rule", (head) => head.credit_rule),
    int("group_size", (head) => head.group.size),
    int("group_counted", (head) => head.group.counted),
    double("group_mean", (head) => head.group.mean),
    double("group_std", (head) => head.group.std),
    texts("group_flags", (head) => head.group.flags),
    double("run_weight", (head) => head.weight),
    text("termination", (head) => head.termination),
    text("termination_detail", (head) => head.termination_detail),
    text("excluded", (head) => head.excluded),
    int("captured_tokens", (head) => head.coverage.captured_tokens),
    int("eligible_tokens", (head) => head.coverage.eligible_tokens),
    int("run_trained_tokens", (head) => head.coverage.trained_tokens),
    records("masked", (head) => sortedEntries(head.coverage.masked), MASKED_FIELDS),
    records("outside", (head) => head.outside, OUTSIDE_FIELDS),
    int("turns", (head) => head.turns),
    texts("sampling", (head) => head.sampling.map(canonicalJson)),
    records("evidence", (head) => head.evidence, EVIDENCE_FIELDS),
    texts("conflicts", (head) => head.conflicts),
  ];
}

function ownColumns(samples: readonly (MadeSample | null)[], wide: boolean): Column[] {
  const advantage = samples.map((sample) => sample?.advantage ?? null);
  const perAction = samples.map((sample) => Float64Array.from(sample?.advantage_per_action ?? []));
  const floats = wide ? "float64" : "float32";
  return [
    intColumn(
      "sample_index",
      samples.map((sample) => sample?.sample_index ?? null),
    ),
    textColumn(
      "trajectory_id",
      samples.map((sample) => sample?.trajectory_id ?? null),
    ),
    numbersColumn(
      "segments",
      "int32",
      samples.map((sample) => Int32Array.from(sample?.segments ?? [])),
    ),
    numbersColumn(
      "tokens",
      "int32",
      samples.map((sample) => sample?.tokens ?? NO_IDS),
    ),
    numbersColumn(
      "loss_mask",
      "int8",
      samples.map((sample) => sample?.loss_mask ?? NO_MASK),
    ),
    numbersColumn(
      "logprobs",
      floats,
      samples.map((sample) => sample?.logprobs ?? NO_LOGPROBS),
    ),
    doubleColumn("advantage", advantage),
    numbersColumn("advantage_per_action", "float64", perAction),
    doubleColumn(
      "weight",
      samples.map((sample) => sample?.weight ?? null),
    ),
    textColumn(
      "finish_reason",
      samples.map((sample) => sample?.finish_reason ?? null),
    ),
    intColumn(
      "trained_tokens",
      samples.map((sample) => sample?.trained_tokens ?? null),
    ),
    doubleColumn(
      "temperature",
      samples.map((sample) => sample?.temperature ?? null),
    ),
    longColumn(
      "version_min",
      samples.map((sample) => sample?.version_min ?? null),
    ),
    longColumn(
      "version_max",
      samples.map((sample) => sample?.version_max ?? null),
    ),
    recordsColumn(
      "spans",
      samples.map((sample) => sample?.spans ?? []),
      SPAN_FIELDS,
    ),
    // The run's column `turns` counts them.
    recordsColumn(
      "sample_turns",
      samples.map((sample) => sample?.turns ?? []),
      TURN_FIELDS,
    ),
  ];
}

export function packedColumns(rows: readonly PackedSample[], wide: boolean): Column[] {
  return [
    textColumn(
      "schema",
      rows.map((row) => row.schema),
    ),
    numbersColumn(
      "tokens",
      "int32",
      rows.map((row) => row.tokens),
    ),
    numbersColumn(
      "loss_mask",
      "int8",
      rows.map((row) => row.loss_mask),
    ),
    numbersColumn(
      "logprobs",
      wide ? "float64" : "float32",
      rows.map((row) => row.logprobs),
    ),
    numbersColumn(
      "position_ids",
      "int32",
      rows.map((row) => row.position_ids),
    ),
    recordsColumn(
      "parts",
      rows.map((row) => row.parts),
      partColumns,
    ),
  ];
}

function partColumns(parts: readonly PackedSample["parts"][number][]): Column[] {
  const text = (name: string, of: (part: (typeof parts)[number]) => string | null) => textColumn(name, parts.map(of));
  const int = (name: string, of: (part: (typeof parts)[number]) => number) => intColumn(name, parts.map(of));
  const double = (name: string, of: (part: (typeof parts)[number]) => number | null) =>
    doubleColumn(name, parts.map(of));
  return [
    text("run_id", (part) => part.run_id),
    text("trial_id", (part) => part.trial_id),
    int("attempt", (part) => part.attempt),
    text("group_id", (part) => part.group_id),
    double("reward", (part) => part.reward),
    text("excluded", (part) => part.excluded),
    int("sample", (part) => part.sample),
    int("start", (part) => part.start),
    int("end", (part) => part.end),
    double("advantage", (part) => part.advantage),
    numbersColumn(
      "advantage_per_action",
      "float64",
      parts.map((part) => Float64Array.from(part.advantage_per_action)),
    ),
    double("weight", (part) => part.weight),
  ];
}
