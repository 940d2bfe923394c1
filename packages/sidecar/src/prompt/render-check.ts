/** The start-up check of a renderer bundle: the engine renders the probe chats as the bundle does, id for id, or the first difference is shown. */
import { TitoError } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import type { EngineAdapter } from "../engine-adapter/adapter.js";
import { postJson } from "../engine-adapter/info-route.js";
import { chatForm, GREEDY, PROBE_CHATS, type ProbeForm, readProbe } from "../engine-adapter/probe-form.js";
import type { Upstream } from "../sample/upstream.js";

type CheckingRenderer = Pick<Renderer, "render" | "decode">;

/** Ids before and after the first difference that are shown. */
const SHOWN_BEFORE = 8;
const SHOWN_AFTER = 4;

/** Null: every probe chat is the same; else what differs, as text for a person. */
export async function renderDifference(
  { upstream, model, adapter }: { upstream: Upstream; model: string; adapter: EngineAdapter },
  renderer: CheckingRenderer,
): Promise<string | null> {
  for (const [index, chat] of PROBE_CHATS.entries()) {
    const { messages, tools } = readProbe(chat);
    const ours = (await renderer.render(messages, tools)).ids;
    const theirs =
      (await adapter.tokenizeChat(upstream, model, chat)) ?? (await chatted(upstream, chatForm(model, adapter), chat));
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

/** The prompt ids that a chat reply reports. */
async function chatted(
  upstream: Upstream,
  form: ProbeForm | null,
  chat: Record<string, unknown>,
): Promise<Int32Array | null> {
  if (form === null) return null;
  const { path, body, reader } = await form(chat, { sampling: GREEDY, maxTokens: 1, stream: false });
  return reader()(await postJson(upstream, path, body)).promptIds;
}
