/** Small questions to an engine's information routes: a route that is not there, or answers otherwise, is no answer. */
import { asObject, asString } from "../json/narrow.js";
import { parseEngineJson } from "../json/slices.js";
import type { Upstream } from "../sample/upstream.js";

/** Marks the sidecar's own start-up calls in an engine's log. */
export const PROBE_HEADERS = { "x-tito-probe": "1" };

export async function getJson(upstream: Upstream, path: string): Promise<unknown> {
  return read(await upstream.send({ method: "GET", path, headers: PROBE_HEADERS }));
}

export async function postJson(upstream: Upstream, path: string, body: string): Promise<unknown> {
  return read(await upstream.send({ method: "POST", path, body, headers: PROBE_HEADERS, repeatable: true }));
}

/** A text or number member of the first of `paths` that has it. */
export async function infoField(upstream: Upstream, paths: readonly string[], field: string): Promise<string | null> {
  for (const path of paths) {
    const value = asObject(await getJson(upstream, path))?.[field];
    if (typeof value === "number") return String(value);
    if (asString(value) !== null) return asString(value);
  }
  return null;
}

/** How long a small question beside a call may take; the answer to the harness waits for it. */
const DETOKENIZE_TIMEOUT_MS = 1000;

/** The text of ids by an engine's `/detokenize`, in its member `answer`; null where there is no such route, or no answer in a second. */
export async function detokenize(
  upstream: Upstream,
  question: { model: string; tokens: number[]; skip_special_tokens?: false },
  answer: string,
): Promise<string | null> {
  const body = JSON.stringify(question);
  const signal = AbortSignal.timeout(DETOKENIZE_TIMEOUT_MS);
  try {
    const response = await upstream.send({ method: "POST", path: "/detokenize", body, headers: PROBE_HEADERS, signal });
    return asString(asObject(await read(response))?.[answer]);
  } catch {
    return null;
  }
}

/** A list of token ids, or null. */
export function asIds(value: unknown): Int32Array | null {
  const whole = Array.isArray(value) && value.every((id) => Number.isInteger(id));
  return whole ? Int32Array.from(value as number[]) : null;
}

async function read(response: Awaited<ReturnType<Upstream["send"]>>): Promise<unknown> {
  const text = await response.text();
  if (response.status !== 200) return null;
  try {
    return parseEngineJson(text);
  } catch {
    return null;
  }
}
