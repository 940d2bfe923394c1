/**
 * What the engine can do, found before the first call: is it there, does it serve the model, do its replies carry exact ids and
 * log probabilities, also streamed with a tool call, are these raw or processed, does it tell its weight version.
 * An engine without ids is refused here, in one line, and not in the middle of a rollout.
 */
import { createHash } from "node:crypto";
import { type LogprobMode, TitoError } from "@tito/format";
import type { SidecarConfig } from "./config.js";
import { asArray, asObject, asString } from "./json/narrow.js";
import { parseEngineJson } from "./json/slices.js";
import { chatForm, GREEDY, PROBE_CHATS, PROBE_HEADERS, PROBE_TOOL, type ProbeForm } from "./probe-form.js";
import { type EngineChunk, readEngineChunk } from "./sample/engine-chunk.js";
import { readFailure } from "./sample/engine-failure.js";
import { Collector, type Sampled } from "./sample/sampled.js";
import { SseParser } from "./sample/sse.js";
import type { Upstream } from "./sample/upstream.js";

export interface EngineProfile {
  kind: "vllm";
  version: string | null;
  /** The model's entry of the engine's list, as JSON text. */
  modelEntry: string;
  logprobMode: LogprobMode;
  streamsIds: boolean;
  hasWeightInfo: boolean;
  /** Digest over engine, version and the ids of the probe chats. */
  contract: string;
}

/** @throws TitoError `upstream_unavailable`, `upstream_rejected` or `engine_without_ids`. */
export async function probeEngine(
  upstream: Upstream,
  config: SidecarConfig,
  form: ProbeForm = chatForm(config.model),
): Promise<EngineProfile> {
  const modelEntry = await findModel(upstream, config.model);
  const version = await infoField(upstream, "/version", "version");
  const hasWeightInfo = (await readWeightVersion(upstream)) !== null;
  const replies = await Promise.all(PROBE_CHATS.map((chat) => ask(upstream, form, chat, GREEDY)));
  for (const reply of replies) checkIds(reply.sampled);
  const hash = createHash("sha256").update(JSON.stringify(["vllm", version, config.model]));
  for (const reply of replies) hash.update(JSON.stringify([...(reply.sampled.promptIds ?? [])]));
  return {
    kind: "vllm",
    version,
    modelEntry,
    logprobMode:
      config.logprobsMode ??
      (await findLogprobMode(
        upstream,
        form,
        replies.map((reply) => reply.top),
      )),
    streamsIds: await streamsIds(upstream, form),
    hasWeightInfo,
    contract: hash.digest("hex"),
  };
}

/** The engine's current weight version, null when it does not tell. vLLM: `GET /weight_info`. */
export async function readWeightVersion(upstream: Upstream): Promise<string | null> {
  return infoField(upstream, "/weight_info", "weight_version");
}

async function infoField(upstream: Upstream, path: string, field: string): Promise<string | null> {
  const response = await upstream.send({ method: "GET", path });
  const text = await response.text();
  if (response.status !== 200) return null;
  try {
    const value = asObject(JSON.parse(text))?.[field];
    return typeof value === "number" ? String(value) : asString(value);
  } catch {
    return null;
  }
}

async function findModel(upstream: Upstream, model: string): Promise<string> {
  const response = await upstream.send({ method: "GET", path: "/v1/models", headers: PROBE_HEADERS });
  if (response.status !== 200) {
    const { error } = await readFailure(response);
    throw new TitoError(
      "upstream_rejected",
      `the engine at ${upstream.base} does not list its models: ${error.message}`,
      {
        hint: "check --upstream and --upstream-key-file",
      },
    );
  }
  const entries = asArray(asObject(parseJson(await response.text()))?.data) ?? [];
  const entry = entries.find((one) => asString(asObject(one)?.id) === model);
  if (entry !== undefined) return JSON.stringify(entry);
  const names = entries.flatMap((one) => asString(asObject(one)?.id) ?? []).slice(0, 10);
  throw new TitoError(
    "upstream_rejected",
    `the engine at ${upstream.base} does not serve the model ${JSON.stringify(model)}`,
    {
      hint: names.length === 0 ? "it lists no model" : `it serves: ${names.join(", ")}`,
    },
  );
}

interface Probed {
  sampled: Sampled;
  /** Log probability of the likeliest first token. */
  top: number | null;
}

async function ask(
  upstream: Upstream,
  form: ProbeForm,
  chat: Record<string, unknown>,
  sampling: Record<string, number>,
): Promise<Probed> {
  const body = await form.body(chat, { sampling, maxTokens: 1, stream: false });
  const response = await upstream.send({ method: "POST", path: form.path, body, headers: PROBE_HEADERS });
  if (response.status !== 200) {
    const { error, status } = await readFailure(response);
    throw new TitoError(
      "upstream_rejected",
      `the engine at ${upstream.base} refuses a probe with ${status}: ${error.message}`,
    );
  }
  const json = parseJson(await response.text());
  const collector = new Collector();
  collector.add(readEngineChunk(json));
  return { sampled: collector.result(), top: topLogprob(json) };
}

function topLogprob(json: unknown): number | null {
  const choice = asObject(asArray(asObject(json)?.choices)?.[0]);
  const logprobs = asObject(choice?.logprobs);
  const first = asObject(asArray(logprobs?.content)?.[0]);
  const chat = (asArray(first?.top_logprobs) ?? []).map((one) => asObject(one)?.logprob);
  const values = [...chat, ...Object.values(asObject(asArray(logprobs?.top_logprobs)?.[0]) ?? {})];
  const numbers = values.filter((value): value is number => typeof value === "number" && Number.isFinite(value));
  return numbers.length === 0 ? null : Math.max(...numbers);
}

function checkIds(sampled: Sampled): void {
  const missing = [
    ...(sampled.promptIds === null ? ["prompt ids"] : []),
    ...(sampled.ids.length === 0 ? ["sampled ids"] : []),
    ...(sampled.logprobs === null ? ["log probabilities"] : []),
  ];
  if (missing.length > 0) {
    throw new TitoError("engine_without_ids", `the engine's replies carry no ${missing.join(", no ")}`, {
      hint: "it needs vLLM 0.10.2 or later, or another engine that honours return_token_ids and logprobs",
    });
  }
  const wrong = sampled.defects.filter((defect) => defect.endsWith("_disagrees"));
  if (wrong.length > 0)
    throw new TitoError("engine_without_ids", `the engine's replies contradict themselves: ${wrong.join(", ")}`);
}

/** Processed log probabilities change with the temperature, raw ones do not. Needs a prompt whose likeliest token is not certain. */
async function findLogprobMode(
  upstream: Upstream,
  form: ProbeForm,
  atOne: readonly (number | null)[],
): Promise<LogprobMode> {
  const index = atOne.findIndex((value) => value !== null && value < -0.05);
  const first = atOne[index];
  if (first === undefined || first === null) return "unknown";
  const half = await ask(upstream, form, PROBE_CHATS[index]!, { ...GREEDY, temperature: 0.5 });
  if (half.top === null) return "unknown";
  return Math.abs(half.top - first) < 1e-3 ? "raw" : "processed";
}

/** One streamed reply with tools offered: some versions lose ids there. */
async function streamsIds(upstream: Upstream, form: ProbeForm): Promise<boolean> {
  const chat = {
    messages: [{ role: "user", content: 'Call the tool probe with the text "x".' }],
    tools: [PROBE_TOOL],
  };
  const body = await form.body(chat, { sampling: GREEDY, maxTokens: 24, stream: true });
  const response = await upstream.send({ method: "POST", path: form.path, body, headers: PROBE_HEADERS });
  if (response.status !== 200) {
    await response.text();
    return false;
  }
  const parser = new SseParser();
  const collector = new Collector();
  const add = (data: string): void => {
    if (data !== "[DONE]") collector.add(readStreamChunk(data));
  };
  for await (const bytes of response.chunks) parser.push(bytes).forEach(add);
  parser.end().forEach(add);
  return collector.result().defects.length === 0;
}

function readStreamChunk(data: string): EngineChunk {
  return readEngineChunk(parseJson(data));
}

function parseJson(text: string): unknown {
  try {
    return parseEngineJson(text);
  } catch (cause) {
    throw new TitoError("upstream_invalid", "the engine answers with something that is not JSON", {
      cause,
      hint: "does --upstream point at an inference server?",
    });
  }
}
