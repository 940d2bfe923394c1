/**
 * Reads the replies of SGLang's `/generate`. A stream repeats everything so far in each event, or, with a server flag that no reply shows, sends only what is new:
 * the count of sampled ids, which is of the whole reply in both, tells which.
 */
import { asArray, asCount, asObject, asString } from "../json/narrow.js";
import {
  asVersion,
  type EngineChunk,
  NO_CHUNK,
  readError,
  readIds,
  readLogprob,
  readPromptIds,
  readVersions,
} from "../sample/engine-chunk.js";
import type { ChunkReader } from "../sample/sent-call.js";

/** `sent`: the prompt ids, which newer servers repeat and all of them count. */
export function sglangReader(sent: Int32Array): ChunkReader {
  const seen: number[] = [];
  return (json) => {
    const batch = asArray(json);
    const top = asObject(batch === null ? json : batch[0]) ?? {};
    const error = readError(top.error) ?? readError(top.detail);
    if (error !== null) return { ...NO_CHUNK, error };
    const meta = asObject(top.meta_info) ?? {};
    const counted = asCount(meta.completion_tokens);
    const tuples = asArray(meta.output_token_logprobs);
    const fresh = freshIds(seen, idsOf(tuples, top), counted);
    for (const id of fresh?.ids ?? []) seen.push(id);
    const finish = readFinish(meta.finish_reason);
    return {
      ...NO_CHUNK,
      id: asString(meta.id),
      error: finish.error,
      promptIds: readPromptIds(top.prompt_token_ids ?? meta.prompt_token_ids) ?? (counted === null ? null : sent),
      sampled: fresh,
      // Where ids came alone, values are missing, and are found missing.
      logprobs:
        tuples === null || fresh === null
          ? null
          : lastOf(tuples, fresh.ids.length).map((t) => readLogprob(asArray(t)?.[0])),
      hasOutput: (asString(top.text) ?? "") !== "",
      finish: finish.type,
      stopReason: finish.matched,
      usage: finish.type === null ? null : usageOf(meta),
      versions: readVersions(meta.weight_versions),
      version: asVersion(meta.weight_version),
      extraChoices: batch !== null && batch.length > 1,
    };
  };
}

/** The tuples are there on every version; `output_ids` holds only the last id of some aborted replies. */
function idsOf(tuples: readonly unknown[] | null, top: { readonly [key: string]: unknown }): EngineChunk["sampled"] {
  return tuples === null ? readIds(top.output_ids) : readIds(tuples.map((tuple) => asArray(tuple)?.[1]));
}

/** What of an event's ids is new. Ids that contradict earlier events are invalid. */
function freshIds(
  seen: readonly number[],
  event: EngineChunk["sampled"],
  counted: number | null,
): EngineChunk["sampled"] {
  if (event === null || !event.valid) return event;
  const { ids } = event;
  if (seen.length === 0 || counted === null || ids.length !== counted) return event;
  const repeats = seen.every((id, index) => ids[index] === id);
  return repeats ? { ids: ids.slice(seen.length), valid: true } : { ids: [], valid: false };
}

function lastOf(items: readonly unknown[], count: number): readonly unknown[] {
  return count === 0 ? [] : items.slice(-count);
}

/** An object, null until the end. An abort that carries a client error is the engine's refusal of the request. */
function readFinish(value: unknown): {
  type: string | null;
  matched: number | string | null;
  error: EngineChunk["error"];
} {
  const finish = asObject(value);
  const type = asString(finish?.type) ?? asString(value);
  const status = asCount(finish?.status_code);
  const refused = type === "abort" && status !== null && status >= 400 && status < 500;
  return {
    type,
    matched: asString(finish?.matched) ?? asCount(finish?.matched),
    error: refused ? { message: asString(finish?.message) ?? "the engine aborted", code: null, status } : null,
  };
}

function usageOf(meta: { readonly [key: string]: unknown }): EngineChunk["usage"] {
  return {
    prompt: asCount(meta.prompt_tokens),
    completion: asCount(meta.completion_tokens),
    cached: asCount(meta.cached_tokens),
    reasoning: asCount(meta.reasoning_tokens),
  };
}
