/** Audit of an output: does it still keep every promise that a sample makes? Reads the files alone. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { TitoError } from "@tito/format";
import { addCoverage, type Coverage, emptyCoverage } from "../build/coverage.js";
import { digestFile } from "../read/read.js";
import { type Policy, policyDigest, policySchema } from "../recipe/policy.js";
import { manifestPath, type OutputFile, type OutputManifest, outputManifestSchema } from "../write/output-manifest.js";
import { type AuditedCredit, auditCredit } from "./credit-audit.js";
import { PackedAudit } from "./packed-audit.js";
import { type OutputRow, type ReadRun, readOutput } from "./read-output.js";
import { RunAudit } from "./run-audit.js";

export interface OutputVerdict {
  ok: boolean;
  /** What is wrong, in words; at most 100, then how many more. */
  problems: string[];
  files: number;
  runs: number;
  samples: number;
  tokens: number;
  coverage: Coverage;
  /** Sum of all sample weights. */
  weight: number;
}

export interface VerifyOptions {
  /** Directory that the manifest's input paths are relative to: the parent of the trials. Every input is hashed again. */
  inputs?: string | undefined;
}

const PROBLEMS_MAX = 100;

/**
 * Checks a file or a directory of shards against its manifest and against the contract of samples: lengths, spans, masks, coverage,
 * ownership counts, weights that sum to each run's weight, rewards and advantages that follow from the stored scores and rules. Never throws for what is wrong with the content.
 * Errors: `not_found` without an output or manifest.
 */
export async function verifyOutput(path: string, options: VerifyOptions = {}): Promise<OutputVerdict> {
  const { manifest, dir } = openManifest(path);
  const state = new Verification();
  if (options.inputs !== undefined) checkInputs(manifest, options.inputs, state);
  for (const file of manifest.outputs) {
    const full = join(dir, file.path);
    if (!checkFile(full, file, state)) continue;
    try {
      for await (const row of readOutput(full, manifest.format)) state.row(row, file.path);
    } catch (error) {
      state.problem(TitoError.is(error) ? error.message : `${file.path}: ${String(error)}`);
    }
    state.endRun();
  }
  const policy = outputPolicy(manifest);
  if (manifest.packed) state.packed.end(policy);
  else auditCredit(state.credits, policy, (text) => state.problem(text));
  compareTotals(manifest, state);
  return state.verdict(manifest.outputs.length);
}

/** The manifest of a file or a directory of shards, and where its outputs lie. Errors: `not_found`, `damaged`. */
export function openManifest(path: string): { manifest: OutputManifest; dir: string } {
  const stat = statSync(path, { throwIfNoEntry: false });
  const file = manifestPath(path.replace(/\/$/, ""), stat?.isDirectory() ?? false);
  if (!stat || !existsSync(file)) {
    const shards = join(dirname(path), "materialized.json");
    throw new TitoError("not_found", `${path}: ${stat ? `no manifest at ${file}` : "does not exist"}`, {
      hint: existsSync(shards)
        ? `it is a shard: verify the whole directory ${dirname(path)}`
        : "an output that has no manifest was not finished; materialize again, a directory with --resume",
    });
  }
  const text = readFileSync(file, "utf8");
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new TitoError("damaged", `${file} is not JSON`);
  }
  const parsed = outputManifestSchema.safeParse(json);
  if (!parsed.success) throw new TitoError("damaged", `${file}: ${parsed.error.issues[0]!.message}`);
  return { manifest: parsed.data, dir: stat.isDirectory() ? resolve(path) : dirname(resolve(path)) };
}

function checkInputs(manifest: OutputManifest, root: string, state: Verification): void {
  const absent = manifest.inputs.filter((input) => !existsSync(join(root, input.path)));
  // Side files may lie outside of the directory; the files of trials never do.
  const [first, ...more] = manifest.inputs.filter((input) => !input.path.startsWith(".."));
  if (first && more.length > 0 && [first, ...more].every((input) => absent.includes(input))) {
    state.problem(
      `none of the ${more.length + 1} files of trials lies below ${root}, the first would be ${first.path}: --inputs is the directory that holds the trials`,
    );
    return;
  }
  for (const input of absent) state.problem(`input ${input.path} is not there any more`);
  for (const input of manifest.inputs) {
    const path = join(root, input.path);
    if (existsSync(path) && digestFile(path, root).sha256 !== input.sha256)
      state.problem(`input ${input.path} was changed`);
  }
}

/** The rules that the output was made with, from its manifest. */
function outputPolicy(manifest: OutputManifest): Policy {
  const parsed = policySchema.safeParse(manifest.policy);
  if (!parsed.success) throw new TitoError("damaged", `the manifest's policy: ${parsed.error.issues[0]!.message}`);
  if (policyDigest(parsed.data) !== manifest.policy_sha256)
    throw new TitoError("damaged", "the manifest's policy has another digest");
  return parsed.data;
}

function checkFile(path: string, file: OutputFile, state: Verification): boolean {
  if (!existsSync(path)) {
    state.problem(`${file.path} is in the manifest and not there`);
    return false;
  }
  const { sha256, bytes } = digestFile(path, dirname(path));
  if (sha256 !== file.sha256)
    state.problem(`${basename(path)} has ${bytes} bytes and another digest than its manifest says`);
  return true;
}

class Verification {
  private readonly problems: string[] = [];
  private found = 0;
  private audit: RunAudit | null = null;
  private runs = 0;
  private samples = 0;
  private tokens = 0;
  readonly packed = new PackedAudit((text) => this.problem(text));
  /** What credit follows from, a small record a run. */
  readonly credits: AuditedCredit[] = [];
  coverage = emptyCoverage();
  private runWeight = 0;

  problem(text: string): void {
    this.found += 1;
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(text);
  }

  row(row: OutputRow, file: string): void {
    if ("packed" in row) {
      this.packed.row(row.packed, file);
      return;
    }
    if (this.audit === null || !this.audit.isAbout(row.run)) this.startRun(row.run, file);
    if (row.sample === null) return;
    this.samples += 1;
    this.tokens += row.sample.tokens.length;
    this.audit!.sample(row.sample);
  }

  private startRun(run: ReadRun, file: string): void {
    this.endRun();
    this.runs += 1;
    this.audit = new RunAudit(run, file, (text) => this.problem(text));
  }

  endRun(): void {
    if (this.audit === null) return;
    this.runWeight += this.audit.end();
    this.credits.push(this.audit.credit);
    this.coverage = addCoverage(this.coverage, this.audit.run.coverage);
    this.audit = null;
  }

  counts() {
    const { samples, tokens } = this.packed;
    return { runs: this.runs, samples: this.samples + samples, tokens: this.tokens + tokens };
  }

  get weight(): number {
    return this.runWeight + this.packed.weight;
  }

  verdict(files: number): OutputVerdict {
    const more = this.found - this.problems.length;
    const problems = more > 0 ? [...this.problems, `and ${more} more`] : this.problems;
    return { ok: this.found === 0, problems, files, ...this.counts(), coverage: this.coverage, weight: this.weight };
  }
}

function compareTotals(manifest: OutputManifest, state: Verification): void {
  const said = manifest.counts;
  const { runs, samples } = state.counts();
  if (Math.abs(state.weight - manifest.weight) > 1e-9 * Math.max(1, manifest.weight)) {
    state.problem(`weights sum to ${state.weight}, the manifest says ${manifest.weight}`);
  }
  if (manifest.packed) return;
  if (runs !== said.runs) state.problem(`${runs} runs, the manifest says ${said.runs}`);
  if (samples !== said.samples) state.problem(`${samples} samples, the manifest says ${said.samples}`);
  if (JSON.stringify(state.coverage) !== JSON.stringify(manifest.coverage))
    state.problem("the coverage of the runs does not add up to the manifest's");
}
