/** A line that is one call: flat, as an engine's reply, or as a pair of request and response. Pure. */
import type { LaneVerdict } from "@tito/continuity";
import { type Dialect, type Lane, TitoError } from "@tito/format";
import { parseChatRequest } from "../dialect/chat-request.js";
import type { NeutralRequest } from "../dialect/neutral.js";
import { asArray, asObject, asString } from "../json/narrow.js";
import { editObject, findSlice, sliceObject, sliceText } from "../json/slices.js";
import type { Defect } from "../sample/sampled.js";
import { effectiveSampling } from "../sample/sampling.js";
import type { LoggedCall } from "./logged-call.js";
import { label, readTimes } from "./read-fields.js";
import { type JsonRecord, SPELLINGS, spelled } from "./spellings.js";

/** @throws TitoError `format_invalid`, `bad_request` or `unsupported` when the line is no call that can be recorded. */
export function readCall(text: string, record: JsonRecord, ownId: string): LoggedCall {
  const reply = readReply(record);
  const request = readRequest(text, record);
  return {
    callId: label(spelled(record, "call")) ?? ownId,
    dialect: readDialect(record.dialect),
    headers: readHeaders(record.headers),
    request,
    body: bodyOf(text),
    sampling: readSampling(record, request),
    reply,
    excused: excusedDefects(reply),
    lane: readLane(record.lane),
    logprobMode: readLogprobMode(spelled(record, "logprobMode")),
    delivered: typeof record.delivered === "boolean" ? record.delivered : null,
    engine: label(record.engine),
    model: label(record.model),
    rendererContract: label(record.renderer_contract),
    retryOf: label(record.retry_of),
    times: readTimes(record),
  };
}

/** The reply, whatever the layout, as an engine's chat body: so that one reader and one set of invariants holds for all. */
function readReply(record: JsonRecord): JsonRecord {
  const nested = asObject(spelled(record, "reply"));
  const body: JsonRecord = nested ?? record;
  const choices = asArray(body.choices);
  const choice = asObject(choices?.[0]) ?? {};
  const prompt = spelled(record, "prompt") ?? body.prompt_token_ids ?? choice.prompt_token_ids;
  const sampled = spelled(record, "sampled") ?? choice.token_ids;
  if (choices === null && prompt === undefined && sampled === undefined && body.error == null) {
    const wanted = [SPELLINGS.prompt[0], SPELLINGS.sampled[0], "choices"].join(", ");
    throw new TitoError("format_invalid", `no record of a call: none of ${wanted} is there`);
  }
  const version = spelled(body, "version") ?? spelled(record, "version");
  return {
    ...known({ id: body.id, model: body.model ?? record.model, created: body.created, error: body.error }),
    ...known({ prompt_token_ids: prompt, usage: body.usage ?? record.usage }),
    ...known({ weight_version: typeof version === "number" ? String(version) : version }),
    choices: [
      {
        ...finishOf([choice, body, record]),
        ...known({
          index: choice.index,
          token_ids: sampled,
          logprobs: logprobEntries(spelled(record, "logprobs") ?? choice.logprobs),
          stop_reason: choice.stop_reason ?? record.stop_reason,
          weight_version: choice.weight_version,
          weight_versions: choice.weight_versions ?? record.weight_versions,
          message: readMessage(record, choice),
        }),
      },
      ...(choices ?? []).slice(1),
    ],
  };
}

/** The finish reason where a layout has one, null included: a reply that says of itself that it had no end is not whole. */
function finishOf(holders: readonly JsonRecord[]): JsonRecord {
  const holder = holders.find((one) => one.finish_reason !== undefined);
  return holder === undefined ? {} : { finish_reason: holder.finish_reason };
}

function known(fields: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function readMessage(record: JsonRecord, choice: JsonRecord): unknown {
  const message = asObject(choice.message) ?? asObject(spelled(record, "message"));
  if (message !== null) return message;
  const text = asString(choice.text) ?? asString(spelled(record, "text"));
  return text === null ? undefined : { role: "assistant", content: text };
}

/** Log probabilities as `{content: [{logprob}]}`: plain numbers, entries, or the lists of the completions API. */
export function logprobEntries(value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  const list = asArray(value) ?? asArray(asObject(value)?.token_logprobs);
  if (list !== null) return { content: list.map((entry) => asObject(entry) ?? { logprob: entry }) };
  if (asArray(asObject(value)?.content) !== null) return value;
  throw new TitoError(
    "format_invalid",
    "logprobs is neither a list of numbers nor an object with content or token_logprobs",
  );
}

/** A log that has no such field at all tells nothing about it; one that has it must be right. */
export function excusedDefects(reply: JsonRecord): ReadonlySet<Defect> {
  const choice = asObject(asArray(reply.choices)?.[0]) ?? {};
  const excused = new Set<Defect>();
  if (choice.finish_reason === undefined) excused.add("finish_missing");
  const usage = asObject(reply.usage);
  if (usage?.prompt_tokens === undefined || usage.completion_tokens === undefined) excused.add("usage_missing");
  return excused;
}

/** The request's messages and tools explain decisions; a log without them is decided by its ids alone. */
function readRequest(text: string, record: JsonRecord): NeutralRequest {
  const slices = sliceObject(text);
  const request = findSlice(slices, "request");
  if (asArray(asObject(record.request)?.messages) !== null)
    return parseChatRequest(Buffer.from(sliceText(text, request!)));
  if (asArray(record.messages) === null || asArray(record.messages)!.length === 0) return emptyRequest();
  const members = ["messages", "tools"].flatMap((name) => {
    const slice = findSlice(slices, name);
    return slice === undefined ? [] : [`${JSON.stringify(name)}:${sliceText(text, slice)}`];
  });
  return parseChatRequest(Buffer.from(`{${members.join(",")}}`));
}

export function emptyRequest(): NeutralRequest {
  return {
    dialect: "chat",
    stream: false,
    includeUsage: false,
    model: null,
    messages: [],
    tools: [],
    toolChoice: "auto",
    maxOutputTokens: null,
    sampling: {},
    stop: [],
    wantsLogprobs: false,
    ignored: [],
  };
}

/** What the request says, then what the record says beside it. Nothing is filled in: what was sent then is all there is. */
function readSampling(record: JsonRecord, request: NeutralRequest): Record<string, unknown> {
  const told = Object.entries(asObject(spelled(record, "sampling")) ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries([...Object.entries(effectiveSampling(request, "engine", null).effective), ...told]);
}

/** Numbers that are recorded as such are not kept as text a second time; of headers only those are kept that can hold no secret. */
const RECORDED = [
  ...SPELLINGS.prompt,
  ...SPELLINGS.sampled,
  ...SPELLINGS.logprobs,
  ...SPELLINGS.reply,
  "choices",
  "headers",
];

function bodyOf(text: string): string {
  const request = findSlice(sliceObject(text), "request");
  if (request !== undefined && text[request.valueStart] === "{") return sliceText(text, request);
  return editObject(text, new Map(RECORDED.map((name) => [name, null])));
}

function readDialect(value: unknown): Dialect {
  return value === "completions" || value === "responses" || value === "messages" ? value : "chat";
}

function readHeaders(value: unknown): ReadonlyMap<string, readonly string[]> {
  const entries = Object.entries(asObject(value) ?? {}).flatMap(([name, text]) =>
    typeof text === "string" ? [[name.toLowerCase(), [text]] as const] : [],
  );
  return new Map(entries);
}

const LANE = /^(?:main|compaction|(?:sub|aux):.{1,256})$/s;

function readLane(value: unknown): LaneVerdict | null {
  if (typeof value !== "string" || !LANE.test(value)) return null;
  return { lane: value as Lane, evidence: { rule: "import/lane", detail: "the log names it" } };
}

function readLogprobMode(value: unknown): LoggedCall["logprobMode"] {
  return value === "raw" || value === "processed" ? value : null;
}
