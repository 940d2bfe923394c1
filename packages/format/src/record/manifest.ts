/** manifest.json: what a trajectory held when it was sealed. docs/format.md#manifest. Written by the writer, read with the checks below. */
import { TitoError } from "./errors.js";

export const MANIFEST_SCHEMA = "tito.manifest/v1";
/** Schema of the COMPLETE file: {schema, manifest_sha256}. */
export const COMPLETE_SCHEMA = "tito.complete/v1";

/** `complete`: everything that was asked is there. `empty`: no turn. `degraded`: recording failed. `incomplete`: something is known to be missing. */
export type ManifestStatus = "complete" | "incomplete" | "empty" | "degraded";

export interface ManifestFile {
  path: string;
  bytes: number;
  records: number;
  head: { seq: number; digest: string };
  /** `sealed`, `parked`, or `open`: its writer ended without a seal. */
  state: "sealed" | "parked" | "open";
}

export interface ManifestCounts {
  calls: number;
  turns: number;
  sampled_tokens: number;
  uncaptured: number;
  lost_calls: number;
  dangling_calls: number;
  gaps: number;
  segments: number;
  boots: number;
}

export interface Manifest {
  schema: typeof MANIFEST_SCHEMA;
  format_version: number;
  writer_version: string;
  trajectory_id: string;
  run_id: string | null;
  group_id: string | null;
  trial_id: string | null;
  attempt: number;
  metadata: Record<string, string>;
  status: ManifestStatus;
  /** Why the status is not `complete`; bounded. */
  reasons: string[];
  seal_reason: string;
  counts: ManifestCounts;
  /** Opening reason or drift cause → how often; given by the sidecar. */
  drift: Record<string, number>;
  files: ManifestFile[];
  /** Head of the last journal, the anchored one. */
  head: { boot: number; seq: number; digest: string; bytes: number };
  sealed_ms: number;
}

const STATUSES: readonly ManifestStatus[] = ["complete", "incomplete", "empty", "degraded"];

/** Reads manifest.json. Throws `format_invalid` with `where` when it is not one. Unknown keys are skipped. */
export function parseManifest(text: string, where: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("format_invalid", `${where}: not JSON`, { cause });
  }
  const problem = findManifestProblem(value);
  if (problem !== null) throw new TitoError("format_invalid", `${where}: ${problem}`);
  return value as Manifest;
}

function findManifestProblem(value: unknown): string | null {
  if (!isObject(value)) return "not an object";
  if (value.schema !== MANIFEST_SCHEMA) return `schema is not ${MANIFEST_SCHEMA}`;
  for (const key of ["writer_version", "trajectory_id", "seal_reason"]) {
    if (typeof value[key] !== "string") return `${key} is not text`;
  }
  for (const key of ["run_id", "group_id", "trial_id"]) {
    if (value[key] !== null && typeof value[key] !== "string") return `${key} is neither text nor null`;
  }
  for (const key of ["format_version", "attempt", "sealed_ms"]) {
    if (!isCount(value[key])) return `${key} is not a whole number`;
  }
  if (!STATUSES.includes(value.status as ManifestStatus)) return "status is unknown";
  if (!isTextList(value.reasons)) return "reasons is not a list of texts";
  for (const key of ["counts", "drift"]) {
    if (!isObject(value[key]) || !Object.values(value[key]).every(isCount)) return `${key} does not hold whole numbers`;
  }
  if (!isObject(value.metadata) || !isTextList(Object.values(value.metadata))) return "metadata does not hold texts";
  if (!Array.isArray(value.files) || !value.files.every(isManifestFile)) return "files is not a list of files";
  const head = value.head;
  if (!isObject(head) || !isCount(head.boot) || !isHead(head) || !isCount(head.bytes)) return "head is not a head";
  return null;
}

function isManifestFile(value: unknown): boolean {
  if (!isObject(value) || typeof value.path !== "string" || !isCount(value.bytes) || !isCount(value.records))
    return false;
  return isObject(value.head) && isHead(value.head) && ["sealed", "parked", "open"].includes(value.state as string);
}

function isHead(value: Record<string, unknown>): boolean {
  return isCount(value.seq) && typeof value.digest === "string" && /^[0-9a-f]{64}$/.test(value.digest);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
