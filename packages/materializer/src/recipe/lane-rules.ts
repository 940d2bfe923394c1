/** A user's own lane rules, in the shape of the rule data that ships for each harness. docs/lane-rules.md explains the file. */
import type { HarnessRules } from "@tito/continuity";
import { TitoError } from "@tito/format";
import { z } from "zod";
import { yaml } from "./yaml.js";

const text = z.string().min(1, "a text is needed").max(2000);
const texts = z.array(text).max(100);
const label = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, "letters, digits and _ . - are allowed, at most 64");
const header = z.string().regex(/^[a-z0-9_-]{1,64}$/, "the name of a header in lower-case letters is needed");
const limit = z.int().min(0);

const condition = z
  .strictObject({
    header: header.optional(),
    header_contains: text.optional(),
    path_ends: text.optional(),
    system_starts: text.optional(),
    system_contains: text.optional(),
    first_user_starts: text.optional(),
    last_user_starts: text.optional(),
    last_user_contains: text.optional(),
    last_user_equals: text.optional(),
    tools: z.enum(["none", "some"]).optional(),
    max_tokens_at_most: limit.optional(),
    messages_at_most: limit.optional(),
  })
  .refine((when) => Object.keys(when).length > 0, "a condition is needed: without one the rule would name every call")
  .refine(
    (when) => when.header_contains === undefined || when.header !== undefined,
    "header_contains needs the name of a header beside it",
  );

const lane = z.union([
  z.enum(["main", "compaction"]),
  z.strictObject({ aux: label }),
  z.strictObject({ sub_header: header }),
]);

export const laneRulesSchema = z.strictObject({
  harness: label,
  version: z.coerce.string().max(64).default("1"),
  observed: z.string().max(200).default(""),
  user_agents: texts.default([]),
  lanes: z.array(z.strictObject({ name: label, when: condition, lane })).max(200),
  renames: z
    .array(z.strictObject({ sampled: text, echoed: text }))
    .max(100)
    .default([]),
  volatile: z
    .array(z.strictObject({ name: label, start: text, end: text }))
    .max(100)
    .default([]),
  compaction_markers: texts.default([]),
  pruned_markers: texts.default([]),
});

/** As the schema reads it: an optional key may be there and hold undefined, which no rule looks at differently. */
export type LaneRules = z.infer<typeof laneRulesSchema>;

const FILE_BYTES_MAX = 1 << 20;

/** Reads the text of a rule file (YAML or JSON). @throws TitoError `usage` that names the key and what it may be. */
export function parseLaneRules(source: string, name: string): LaneRules {
  if (source.length > FILE_BYTES_MAX) throw new TitoError("usage", `${name}: larger than 1 MiB`);
  const result = laneRulesSchema.safeParse(parse(source, name));
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  const where = path.length === 0 ? name : `${name}: ${path.map(String).join(".")}`;
  throw new TitoError("usage", `${where}: ${message}`, { hint: "see docs/lane-rules.md" });
}

function parse(source: string, name: string): unknown {
  try {
    return yaml().parse(source, { maxAliasCount: 20, prettyErrors: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new TitoError("usage", `${name}: not valid YAML: ${message.split("\n")[0]!.replace(/:$/, "")}`);
  }
}

/** The sets that speak about a call of this user agent: those that name it, and those that name none. */
export function rulesFor(sets: readonly LaneRules[], userAgent: string | undefined): HarnessRules[] {
  const holds = ({ user_agents }: LaneRules) =>
    user_agents.length === 0 || user_agents.some((start) => (userAgent ?? "").startsWith(start));
  return sets.filter(holds) as HarnessRules[];
}
