/** The recipe: every choice that turns evidence into samples, in one schema-checked record. `docs/recipe.md` explains the keys. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import { z } from "zod";
import { canonicalJson } from "./canonical-json.js";
import { compileExpression } from "./expression.js";
import { type LaneRules, laneRulesSchema } from "./lane-rules.js";
import { TERMINATIONS } from "./reasons.js";
import {
  NEUTRAL_SAMPLING,
  SAMPLING_SETTINGS,
  type SamplingDefaults,
  type SamplingSetting,
} from "./sampling-settings.js";
import { yaml } from "./yaml.js";

const verdict = z.enum(["train", "mask"]);
const expression = z.string().min(1, "an expression is needed").max(2000);
const count = z.int().min(0);

/** What the user states about settings that neither the request nor the recorder stated; `neutral`: each changes nothing. */
const samplingDefaults = z.preprocess(
  (given) => (given === "neutral" ? NEUTRAL_SAMPLING : given),
  z.strictObject(
    Object.fromEntries(SAMPLING_SETTINGS.map((name) => [name, z.number().optional()])) as Record<
      SamplingSetting,
      z.ZodOptional<z.ZodNumber>
    >,
  ),
);

const select = z
  .strictObject({
    lanes: z
      .strictObject({
        main: verdict.default("train"),
        sub_agent: verdict.default("train"),
        compaction: verdict.default("train"),
        auxiliary: verdict.default("mask"),
      })
      .prefault({}),
    length: verdict.default("train"),
    malformed: verdict.default("train"),
    retry_orphan: verdict.default("mask"),
    undelivered: verdict.default("mask"),
    delivery_unknown: verdict.default("mask"),
    finish_unknown: verdict.default("mask"),
    logprob_not_behaviour: verdict.default("mask"),
    sampling_defaults: samplingDefaults.prefault({}),
    /** `turn`: one missing value masks its turn; `token`: only the tokens without a value. */
    logprob_missing: z.enum(["turn", "token"]).default("turn"),
    max_version_age: count.nullable().default(null),
    /** Version that has age 0; null: the newest number in the input. */
    current_version: z.int().nullable().default(null),
  })
  .prefault({});

const build = z
  .strictObject({
    split: z.enum(["segment", "turn"]).default("segment"),
    max_seq_len: z.int().min(2).nullable().default(null),
    realign_max_lost_tokens: count.default(0),
  })
  .prefault({});

const exclude = z
  .strictObject({
    terminations: z.array(z.enum(TERMINATIONS)).default(["env_error", "verifier_error", "capture_incomplete"]),
    rules: z
      .array(
        z.strictObject({
          reason: z.string().regex(/^[a-z0-9_]{1,64}$/, "lower-case letters, digits and _ are allowed, at most 64"),
          when: expression,
        }),
      )
      .max(100)
      .default([]),
  })
  .prefault({});

const credit = z
  .strictObject({
    rule: z.enum(["none", "grpo", "grpo-no-std", "rloo", "batch-baseline"]).default("grpo"),
    /** An expression that names the group; `run.group_id` is the recorded or derived one. */
    group: expression.default("run.group_id"),
    weight: z.enum(["run", "token"]).default("run"),
  })
  .prefault({});

const pack = z
  .strictObject({
    max_tokens: z.int().min(2).nullable().default(null),
    /** Bins that may be open at once; the fullest is closed when there would be more. */
    open_bins: z.int().min(1).max(4096).default(64),
    /** Leave out samples that train nothing: they have weight 0. */
    skip_untrained: z.boolean().default(true),
  })
  .prefault({});

const output = z
  .strictObject({
    /** Files of a directory output; a group is never spread over two. */
    shards: z.int().min(1).max(4096).default(16),
    /** A Parquet row group ends with the row that reaches either bound. */
    row_group_rows: z.int().min(1).max(1_000_000).default(16_384),
    row_group_tokens: z.int().min(1).max(100_000_000).default(1_600_000),
    /** Type of every log probability of the output. */
    logprobs: z.enum(["float32", "float64"]).default("float32"),
    /** Hash verifier output and artifacts into `evidence[]`. */
    evidence: z.boolean().default(true),
  })
  .prefault({});

export const policySchema = z.strictObject({
  version: z.literal(1).default(1),
  select,
  /** Rules of the user that tell side calls apart, tried before those that ship. */
  lane_rules: z.array(laneRulesSchema).max(50).default([]),
  build,
  reward: expression.default("reward"),
  exclude,
  credit,
  pack,
  output,
});

export type Policy = z.infer<typeof policySchema>;
export type SelectPolicy = Policy["select"];
export type BuildPolicy = Policy["build"];

/** Command-line flags that override the file. Undefined: not given. */
export interface PolicyFlags {
  reward?: string | undefined;
  credit?: string | undefined;
  weight?: string | undefined;
  group?: string | undefined;
  split?: string | undefined;
  maxSeqLen?: number | undefined;
  maxVersionAge?: number | undefined;
  laneRules?: readonly LaneRules[] | undefined;
  samplingDefaults?: "neutral" | SamplingDefaults | undefined;
  realignMaxLostTokens?: number | undefined;
  packMaxTokens?: number | undefined;
  shards?: number | undefined;
  logprobs?: string | undefined;
}

const FLAG_PATHS: Record<keyof PolicyFlags, readonly [string] | readonly [string, string]> = {
  reward: ["reward"],
  credit: ["credit", "rule"],
  weight: ["credit", "weight"],
  group: ["credit", "group"],
  split: ["build", "split"],
  maxSeqLen: ["build", "max_seq_len"],
  maxVersionAge: ["select", "max_version_age"],
  laneRules: ["lane_rules"],
  samplingDefaults: ["select", "sampling_defaults"],
  realignMaxLostTokens: ["build", "realign_max_lost_tokens"],
  packMaxTokens: ["pack", "max_tokens"],
  shards: ["output", "shards"],
  logprobs: ["output", "logprobs"],
};

const POLICY_BYTES_MAX = 1 << 20;

/**
 * The effective policy: defaults, then the YAML text, then flags. `name` is what messages call the file.
 * Errors: `usage` with the key and what it may be; unknown keys are refused; expressions are compiled to catch typing errors early.
 */
export function loadPolicy(yamlText: string | null, flags: PolicyFlags = {}, name = "recipe"): Policy {
  const tree = overlay(parseYaml(yamlText, name), flags);
  const result = policySchema.safeParse(tree);
  if (!result.success) {
    const { path, message } = result.error.issues[0]!;
    throw new TitoError("usage", `${whereOf(path, flags, name)}: ${message}`, { hint: "see docs/recipe.md" });
  }
  const policy = result.data;
  compileExpression(policy.reward, whereOf(["reward"], flags, name));
  compileExpression(policy.credit.group, whereOf(["credit", "group"], flags, name));
  for (const rule of policy.exclude.rules) compileExpression(rule.when, `${name}: exclude.rules: ${rule.reason}`);
  return withPackLength(policy);
}

/** The flag that gave the value at `path`, else its place in the file. */
function whereOf(path: readonly PropertyKey[], flags: PolicyFlags, name: string): string {
  const key = path.map(String).join(".");
  const flag = (Object.keys(FLAG_PATHS) as (keyof PolicyFlags)[]).find(
    (each) => flags[each] !== undefined && `${key}.`.startsWith(`${FLAG_PATHS[each].join(".")}.`),
  );
  if (flag !== undefined) return `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return key === "" ? name : `${name}: ${key}`;
}

/** A bin can only take samples that fit, so packing bounds the sample length when nothing else does. */
function withPackLength(policy: Policy): Policy {
  const length = policy.pack.max_tokens;
  if (length === null) return policy;
  const given = policy.build.max_seq_len;
  if (given !== null && given > length) {
    throw new TitoError("usage", `policy: build.max_seq_len ${given} does not fit in pack.max_tokens ${length}`);
  }
  return { ...policy, build: { ...policy.build, max_seq_len: given ?? length } };
}

function parseYaml(text: string | null, name: string): unknown {
  if (text === null) return {};
  if (text.length > POLICY_BYTES_MAX) throw new TitoError("usage", `${name}: larger than 1 MiB`);
  try {
    return yaml().parse(text, { maxAliasCount: 20, prettyErrors: true }) ?? {};
  } catch (error) {
    // The parser goes on with the line and an arrow below it.
    const message = (error instanceof Error ? error.message : String(error)).split("\n")[0]!;
    throw new TitoError(
      "usage",
      `${name}: not valid YAML: ${message.replace(/; please use .*?(?= at line|$)/, "").replace(/:$/, "")}`,
    );
  }
}

function overlay(tree: unknown, flags: PolicyFlags): unknown {
  if (typeof tree !== "object" || tree === null || Array.isArray(tree)) return tree;
  const out = new Map<string, unknown>(Object.entries(tree));
  for (const name of Object.keys(FLAG_PATHS) as (keyof PolicyFlags)[]) {
    const value = flags[name];
    if (value === undefined) continue;
    const [top, key] = FLAG_PATHS[name];
    if (key === undefined) out.set(top, value);
    else
      out.set(top, Object.fromEntries([...Object.entries((out.get(top) as object | undefined) ?? {}), [key, value]]));
  }
  return Object.fromEntries(out);
}

/** The effective policy as YAML that `loadPolicy` reads back to the same policy. */
export function printPolicy(policy: Policy): string {
  return yaml().stringify(policy, { lineWidth: 120 });
}

/** SHA-256 over the effective policy as canonical JSON: equal digests mean equal rules. */
export function policyDigest(policy: Policy): string {
  return createHash("sha256").update(canonicalJson(policy)).digest("hex");
}
