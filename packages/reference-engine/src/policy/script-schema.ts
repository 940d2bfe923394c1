import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import { z } from "zod";
import { faultSchema } from "../faults/schema.js";

const texts = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

const matchSchema = z.strictObject({
  /** Role of the last message before the answer. */
  lastRole: z.enum(["system", "developer", "user", "assistant", "tool"]).optional(),
  /** All of these occur in the prompt as text. */
  contains: texts.optional(),
  /** All of these occur in the last message. */
  lastContains: texts.optional(),
  /** None of these occurs in the prompt. */
  excludes: texts.optional(),
  /** All of these tools are offered. */
  toolNames: texts.optional(),
  /** Whether any tool is offered (chat requests only). */
  hasTools: z.boolean().optional(),
  /** The nth time (from 1) that the other conditions hold. */
  nth: z.number().int().min(1).optional(),
});

const callSchema = z.strictObject({
  name: z.string(),
  /** JSON text as the policy is to sample it, valid or not; an object is spelled as the template spells it. */
  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]),
});

const replySchema = z
  .strictObject({
    reasoning: z.string().optional(),
    content: z.string().optional(),
    tool_calls: z.array(callSchema).optional(),
    /** The whole answer as text, markers and all. Not together with the three above. */
    raw: z.string().optional(),
    /** The whole answer as ids. Not together with any of the above. */
    ids: z.array(z.number().int().min(0)).optional(),
    /** `stop` ends with the end-of-sequence token, `length` without. Default `stop`. */
    finish: z.enum(["stop", "length"]).default("stop"),
    /** How the text between markers is cut into ids. Default: as the tokenizer does. A list of pieces must spell the whole answer. */
    split: z.union([z.enum(["bytes", "characters"]), z.array(z.string().min(1)).min(1)]).optional(),
    /** Wait before each token. */
    delayMs: z.number().int().min(0).max(600_000).default(0),
  })
  .refine(
    (reply) => {
      const structured = reply.reasoning !== undefined || reply.content !== undefined || reply.tool_calls !== undefined;
      return [structured, reply.raw !== undefined, reply.ids !== undefined].filter(Boolean).length === 1;
    },
    { message: "give either reasoning/content/tool_calls, or raw, or ids" },
  );

const ruleSchema = z
  .strictObject({
    /** Shown in the request log. */
    name: z.string().optional(),
    match: matchSchema.default({}),
    /** How often the rule answers; then later rules are tried. Default: always. */
    times: z.number().int().min(1).optional(),
    reply: replySchema.optional(),
    /** One after the other; the last one stays. */
    replies: z.array(replySchema).min(1).optional(),
    fault: faultSchema.optional(),
  })
  .refine((rule) => rule.reply === undefined || rule.replies === undefined, {
    message: "give reply or replies, not both",
  })
  .refine((rule) => rule.reply !== undefined || rule.replies !== undefined || rule.fault !== undefined, {
    message: "give a reply, replies or a fault",
  });

const scriptSchema = z.union([
  z.array(ruleSchema).min(1),
  z.strictObject({ rules: z.array(ruleSchema), unmatched: replySchema.optional() }),
]);

export type ScriptMatch = z.infer<typeof matchSchema>;
export type ScriptReply = z.infer<typeof replySchema>;
export type ScriptRule = z.infer<typeof ruleSchema>;

/** A script: rules in order, and the answer to what no rule matches. */
export interface Script {
  rules: ScriptRule[];
  unmatched: ScriptReply;
}

/** What a script answers to a prompt that no rule is for, so that a probe of the engine works and a gap in a script shows in the transcript. */
const UNMATCHED: ScriptReply = { content: "No rule of the script matches.", finish: "stop", delayMs: 0 };

/** Reads and checks a script. Throws `not_found` or `usage` with the file and the place in it. */
export function readScript(file: string): Script {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new TitoError("not_found", `engine: cannot read the script ${file}`, { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TitoError(
      "usage",
      `engine: the script ${file} is not JSON: ${cause instanceof Error ? cause.message : cause}`,
    );
  }
  return parseScript(value, file);
}

/** Checks a script that is already a value. */
export function parseScript(value: unknown, file: string): Script {
  // A union reports nothing useful about either branch; choose the branch first.
  const parsed = (Array.isArray(value) ? scriptSchema.options[0] : scriptSchema.options[1]).safeParse(value);
  if (!parsed.success) {
    const problem = z.prettifyError(parsed.error).replaceAll("\n", " ");
    throw new TitoError("usage", `engine: the script ${file}: ${problem}`, {
      hint: "docs/embedded-engine.md has the schema",
    });
  }
  if (Array.isArray(parsed.data)) return { rules: parsed.data, unmatched: UNMATCHED };
  return { rules: parsed.data.rules, unmatched: parsed.data.unmatched ?? UNMATCHED };
}
