/**
 * What the engine can do, found before the first call: is it there, does it serve the model, do its replies carry exact ids and
 * log probabilities, also streamed with a tool call, are these raw or processed, does it tell its weight version.
 * An engine without ids is refused here, in one line, and not in the middle of a rollout.
 */
import { createHash } from "node:crypto";
import { type LogprobMode, TitoError } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import type { EngineKind, SidecarConfig } from "../config/config.js";
import { asArray, asObject, asString } from "../json/narrow.js";
import { parseEngineJson } from "../json/slices.js";
import { readFailure } from "../sample/engine-failure.js";
import { Collector, type Sampled } from "../sample/sampled.js";
import { SseParser } from "../sample/sse.js";
import type { Upstream } from "../sample/upstream.js";
import type { EngineAdapter } from "./adapter.js";
import { chooseAdapter } from "./choose.js";
import { PROBE_HEADERS } from "./info-route.js";
import { chatForm, GREEDY, idsForm, PROBE_CHATS, PROBE_TOOL, type ProbeForm } from "./probe-form.js";

export interface EngineProfile {
  kind: EngineKind;
  adapter: EngineAdapter;
  version: string | null;
  /** The model's entry of the engine's list, as JSON text. */
  modelEntry: string;
  logprobMode: LogprobMode;
  streamsIds: boolean;
  /** Its replies say how many ids they have: one that does not has lost that, and maybe ids with it. */
  tellsCounts: boolean;
  /** What it called its weights at the start; null: it does not tell. */
  weightVersion: string | null;
  /** Longest prompt and answer together; null when the engine does not tell. */
  contextTokens: number | null;
  /** Digest over engine, version and the ids of the probe chats. */
  contract: string;
}

/**
 * `renderer`: who renders the probe chats, null for the engine.
 * @throws TitoError `upstream_unavailable`, `upstream_rejected` or `engine_without_ids`; `usage` where the engine needs a renderer.
 */
export async function probeEngine(
  upstream: Upstream,
  config: SidecarConfig,
  renderer: Pick<Renderer, "render" | "stopIds"> | null = null,
): Promise<EngineProfile> {
  const { model } = config;
  const modelEntry = await findModel(upstream, config);
  const target = { upstream, model, modelEntry };
  const adapter = await chooseAdapter(config.engine, target, renderer !== null);
  const form = renderer === null ? chatForm(model, adapter) : idsForm(model, adapter, renderer);
  if (form === null) throw needsRenderer(adapter.kind);
  const version = await adapter.version(upstream);
  const weightVersion = await adapter.weightVersion(upstream);
  const probe: Probe = { upstream, adapter, form };
  const replies = await Promise.all(PROBE_CHATS.map((chat) => ask(probe, chat, GREEDY)));
  for (const reply of replies) checkIds(reply.sampled);
  if (renderer !== null) await adapter.checkStops?.(target, renderer.stopIds);
  const hash = createHash("sha256").update(JSON.stringify([adapter.kind, version, model]));
  for (const reply of replies) hash.update(JSON.stringify([...(reply.sampled.promptIds ?? [])]));
  const tellsCounts = replies.every((reply) => !reply.sampled.defects.includes("usage_missing"));
  return {
    kind: adapter.kind,
    adapter,
    version,
    modelEntry,
    logprobMode:
      config.logprobsMode ??
      adapter.logprobMode(replies.map((reply) => reply.json)) ??
      (await findLogprobMode(
        probe,
        replies.map((reply) => reply.top),
      )),
    streamsIds: adapter.canStream && (await streamsIds(probe, tellsCounts)),
    tellsCounts,
    weightVersion,
    contextTokens: await adapter.contextTokens(target),
    contract: hash.digest("hex"),
  };
}

function needsRenderer(kind: EngineKind): TitoError {
  return new TitoError("usage", `${kind} gives no prompt ids for messages, only for ids`, {
    hint: "give --renderer BUNDLE_DIR (tito bundle makes one from the model's files)",
  });
}

async function findModel(upstream: Upstream, { model, engine }: SidecarConfig): Promise<string> {
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
  if (entry !== undefined) return entryText(entry);
  // Its list names models; a model with its deployment is not in it, and is refused by the probe when it is none.
  if (engine === "fireworks") return JSON.stringify({ id: model, object: "model", owned_by: "fireworks" });
  const names = entries.flatMap((one) => asString(asObject(one)?.id) ?? []).slice(0, 10);
  throw new TitoError(
    "upstream_rejected",
    `the engine at ${upstream.base} does not serve the model ${JSON.stringify(model)}`,
    {
      hint: names.length === 0 ? "it lists no model" : `it serves: ${names.join(", ")}`,
    },
  );
}

/** @throws TitoError `upstream_invalid` for an entry that is nested without end. */
function entryText(entry: unknown): string {
  try {
    return JSON.stringify(entry);
  } catch (cause) {
    throw new TitoError("upstream_invalid", "the engine's list of models can not be read", { cause });
  }
}

interface Probe {
  upstream: Upstream;
  adapter: EngineAdapter;
  form: ProbeForm;
}

interface Probed {
  sampled: Sampled;
  json: unknown;
  /** Log probability of the likeliest first token. */
  top: number | null;
}

async function ask(
  { upstream, adapter, form }: Probe,
  chat: Record<string, unknown>,
  sampling: Record<string, number>,
): Promise<Probed> {
  const { path, body, reader } = await form(chat, { sampling, maxTokens: 1, stream: false });
  const response = await upstream.send({ method: "POST", path, body, headers: PROBE_HEADERS, repeatable: true });
  if (response.status !== 200) {
    const { error, status } = await readFailure(response);
    throw new TitoError(
      "upstream_rejected",
      `the engine at ${upstream.base} refuses a probe with ${status}: ${error.message}`,
    );
  }
  const json = parseJson(await response.text());
  const collector = new Collector();
  collector.add(reader()(json));
  return { sampled: collector.result(), json, top: adapter.likeliest(json) };
}

function checkIds(sampled: Sampled): void {
  const missing = [
    ...(sampled.promptIds === null ? ["prompt ids"] : []),
    ...(sampled.ids.length === 0 ? ["sampled ids"] : []),
    ...(sampled.logprobs === null ? ["log probabilities"] : []),
  ];
  if (missing.length > 0) {
    throw new TitoError("engine_without_ids", `the engine's replies carry no ${missing.join(", no ")}`, {
      hint: "it needs vLLM 0.10.2 or later, or another engine of --engine; sometimes with --renderer BUNDLE_DIR only",
    });
  }
  const wrong = sampled.defects.filter((defect) => defect.endsWith("_disagrees") || defect === "logprob_positive");
  if (wrong.length > 0)
    throw new TitoError("engine_without_ids", `the engine's replies contradict themselves: ${wrong.join(", ")}`);
}

/** Processed log probabilities change with the temperature, raw ones do not. Needs a prompt whose likeliest token is not certain. */
async function findLogprobMode(probe: Probe, atOne: readonly (number | null)[]): Promise<LogprobMode> {
  const index = atOne.findIndex((value) => value !== null && value < -0.05);
  const first = atOne[index];
  if (first === undefined || first === null) return "unknown";
  const half = await ask(probe, PROBE_CHATS[index]!, { ...GREEDY, temperature: 0.5 });
  if (half.top === null) return "unknown";
  return Math.abs(half.top - first) < 1e-3 ? "raw" : "processed";
}

/** One streamed reply with tools offered: some versions lose ids there. */
async function streamsIds({ upstream, form }: Probe, tellsCounts: boolean): Promise<boolean> {
  const chat = {
    messages: [{ role: "user", content: 'Call the tool probe with the text "x".' }],
    tools: [PROBE_TOOL],
  };
  const { path, body, reader } = await form(chat, { sampling: GREEDY, maxTokens: 24, stream: true });
  const response = await upstream.send({ method: "POST", path, body, headers: PROBE_HEADERS, repeatable: true });
  if (response.status !== 200) {
    await response.text();
    return false;
  }
  const parser = new SseParser();
  const collector = new Collector(null, tellsCounts);
  const read = reader();
  const add = (data: string): void => {
    if (data !== "[DONE]") collector.add(read(parseJson(data)));
  };
  await response.read(async (bytes) => {
    parser.push(bytes).forEach(add);
    return true;
  });
  parser.end().forEach(add);
  return collector.result().defects.length === 0;
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
