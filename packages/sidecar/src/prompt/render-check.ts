/** The start-up check of a renderer bundle: the engine renders the probe chats as the bundle does, id for id, or the first difference is shown. */
import { TitoError } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import { asArray, asObject } from "../json/narrow.js";
import { parseEngineJson } from "../json/slices.js";
import { chatForm, GREEDY, PROBE_CHATS, PROBE_HEADERS, readProbe } from "../probe-form.js";
import { readEngineChunk } from "../sample/engine-chunk.js";
import type { Upstream } from "../sample/upstream.js";

type CheckingRenderer = Pick<Renderer, "render" | "decode">;

/** Ids before and after the first difference that are shown. */
const SHOWN_BEFORE = 8;
const SHOWN_AFTER = 4;

/** Null: every probe chat is the same; else what differs, as text for a person. */
export async function renderDifference(
  upstream: Upstream,
  model: string,
  renderer: CheckingRenderer,
): Promise<string | null> {
  for (const [index, chat] of PROBE_CHATS.entries()) {
    const { messages, tools } = readProbe(chat);
    const ours = (await renderer.render(messages, tools)).ids;
    const theirs = (await tokenized(upstream, model, chat)) ?? (await chatted(upstream, model, chat));
    if (theirs === null) return "the engine renders no chat to compare with: its /tokenize and chat routes give no ids";
    const at = firstDifference(ours, theirs);
    if (at !== null) return `probe chat ${index + 1}: ${await tokenDiff(renderer, ours, theirs, at)}`;
  }
  return null;
}

/** @throws TitoError `render_mismatch` with the token diff. */
export function refuseMismatch(difference: string): never {
  throw new TitoError("render_mismatch", `the engine renders otherwise than the renderer bundle\n${difference}`, {
    hint: "make the bundle from the files that the engine serves, or give --allow-render-mismatch",
  });
}

/** First index where the two differ, or where the shorter one ends; null when they are equal. */
export function firstDifference(ours: Int32Array, theirs: Int32Array): number | null {
  const length = Math.min(ours.length, theirs.length);
  for (let i = 0; i < length; i++) if (ours[i] !== theirs[i]) return i;
  return ours.length === theirs.length ? null : length;
}

/** The first differing id, with the text around it on both sides. */
export async function tokenDiff(
  renderer: Pick<Renderer, "decode">,
  ours: Int32Array,
  theirs: Int32Array,
  at: number,
): Promise<string> {
  const text = async (ids: Int32Array): Promise<string> => JSON.stringify(await renderer.decode(ids));
  const side = async (name: string, ids: Int32Array): Promise<string> => {
    const id = at < ids.length ? String(ids[at]) : "(end)";
    const own = await text(ids.slice(at, at + 1));
    return `  ${name} ${id.padStart(7)} ${own}, then ${await text(ids.slice(at + 1, at + 1 + SHOWN_AFTER))}`;
  };
  const before = await text(ours.slice(Math.max(0, at - SHOWN_BEFORE), at));
  return [
    `token ${at} differs (bundle: ${ours.length} ids, engine: ${theirs.length} ids), behind ${before}`,
    await side("bundle", ours),
    await side("engine", theirs),
  ].join("\n");
}

/** The ids by vLLM's tokenize route; null where there is none. */
async function tokenized(upstream: Upstream, model: string, chat: Record<string, unknown>): Promise<Int32Array | null> {
  const body = JSON.stringify({ model, ...chat, add_generation_prompt: true, add_special_tokens: false });
  const json = await post(upstream, "/tokenize", body);
  const tokens = asArray(asObject(json)?.tokens);
  return tokens?.every((id) => Number.isInteger(id)) === true ? Int32Array.from(tokens as number[]) : null;
}

/** The prompt ids that a chat reply reports. */
async function chatted(upstream: Upstream, model: string, chat: Record<string, unknown>): Promise<Int32Array | null> {
  const form = chatForm(model);
  const json = await post(
    upstream,
    form.path,
    await form.body(chat, { sampling: GREEDY, maxTokens: 1, stream: false }),
  );
  return readEngineChunk(json).promptIds;
}

async function post(upstream: Upstream, path: string, body: string): Promise<unknown> {
  const response = await upstream.send({ method: "POST", path, body, headers: PROBE_HEADERS });
  const text = await response.text();
  if (response.status !== 200) return null;
  try {
    return parseEngineJson(text);
  } catch {
    return null;
  }
}
