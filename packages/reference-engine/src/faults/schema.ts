import { z } from "zod";

const tokens = z.number().int().min(0);

/** Every way in which the engine can go wrong on request. docs/embedded-engine.md explains each. */
export const faultSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("status"),
    status: z.number().int().min(400).max(599),
    /** Default: an error in vLLM's shape. Text is sent as it is. */
    body: z.unknown().optional(),
    retryAfter: z.union([z.string(), z.number()]).optional(),
  }),
  z.strictObject({ kind: z.literal("slow_tokens"), delayMs: z.number().int().min(0).max(600_000) }),
  /** `rst` resets the connection, `fin` closes it within the chunked body, `end` ends the body properly but without a finish. */
  z.strictObject({
    kind: z.literal("cut_stream"),
    afterTokens: tokens,
    how: z.enum(["rst", "fin", "end"]).default("rst"),
  }),
  z.strictObject({ kind: z.literal("abort"), afterTokens: tokens }),
  z.strictObject({ kind: z.literal("missing_logprobs") }),
  z.strictObject({ kind: z.literal("short_logprobs") }),
  z.strictObject({
    kind: z.literal("nan_logprobs"),
    as: z.enum(["null", "string", "literal", "floor"]).default("null"),
  }),
  z.strictObject({ kind: z.literal("missing_ids") }),
  z.strictObject({ kind: z.literal("missing_prompt_ids") }),
  /** Of a stream: ids and log probabilities behind the first `after` tokens, as where a tool parser swallows what it reads. */
  z.strictObject({ kind: z.literal("lost_ids"), after: tokens.default(0) }),
  /** Of a stream: the chunk of one token, from 0, and, unless `usage`, all counts behind it. */
  z.strictObject({ kind: z.literal("lost_chunk"), token: tokens, usage: z.boolean().default(true) }),
  /** The answer ends before its first token. */
  z.strictObject({ kind: z.literal("no_tokens"), finish: z.enum(["stop", "length"]).default("stop") }),
  z.strictObject({
    kind: z.literal("wrong_usage"),
    completionTokens: z.number().int().default(1),
    promptTokens: z.number().int().default(0),
  }),
  z.strictObject({ kind: z.literal("bad_json"), afterTokens: tokens.default(0) }),
  z.strictObject({
    kind: z.literal("error_event"),
    afterTokens: tokens.default(0),
    message: z.string().default("EngineCore encountered an issue."),
  }),
  z.strictObject({ kind: z.literal("coalesce"), tokens: z.number().int().min(2).max(1000) }),
  z.strictObject({ kind: z.literal("empty_200") }),
  z.strictObject({ kind: z.literal("html_200") }),
  z.strictObject({ kind: z.literal("hang_before_headers") }),
  z.strictObject({ kind: z.literal("hang_after"), tokens }),
]);

export type Fault = z.infer<typeof faultSchema>;

/** Which requests a queued fault is for. All conditions given must hold. */
const faultTargetSchema = z.strictObject({
  /** Request path, exactly. Default: any path that generates. */
  path: z.string().optional(),
  /** The nth request (from 1) that the other conditions hold for, counted from when the fault was queued. */
  nth: z.number().int().min(1).optional(),
  /** Text that occurs in the request body. */
  match: z.string().optional(),
});

export const queuedFaultSchema = z.strictObject({
  /** How many requests it befalls. Default 1. */
  times: z.number().int().min(1).default(1),
  on: faultTargetSchema.default({}),
  fault: faultSchema,
});

export type QueuedFault = z.infer<typeof queuedFaultSchema>;
