/**
 * Certifies a bundle's junction shape by shape. Where nothing drifted, the incremental prompt must be the full render, id for id; where the policy's own tokenization differs from the
 * canonical one, the checkpoint must survive untouched in front of the same tail.
 */
import type { Message } from "@tito/format";
import type { PromptRenderer } from "../prompt-renderer.js";
import { joinIds } from "../tokenizer/tokenizer.js";
import { CERTIFICATE_SCHEMA, type Certificate, type CertifiedShape, RENDERER_VERSION } from "./certificate.js";
import { joinAtCheckpoint, renderTail, type Tail } from "./join.js";
import { inForm, type Probe, type ProbeForm, probeConversation, unprobeable } from "./probe-conversations.js";
import { findForm } from "./probe-form.js";
import { sameReply } from "./same-reply.js";
import { SHAPES, type Shape } from "./shapes.js";

export interface CertifyOptions {
  /** Conversations per shape; default 40. */
  conversations?: number;
  seed?: number;
  /** Called after each shape: how many of how many are done. */
  onProgress?(done: number, total: number): void;
}

/** Tries every shape. Deterministic for one bundle, seed and count. */
export function certify(renderer: PromptRenderer, options: CertifyOptions = {}): Certificate {
  const { conversations = 40, seed = 1 } = options;
  const certificate: Certificate = {
    schema: CERTIFICATE_SCHEMA,
    bundle: renderer.contractId,
    renderer_version: RENDERER_VERSION,
    seed,
    shapes: {},
    refused: [],
  };
  const form = findForm(renderer);
  for (const shape of SHAPES) {
    const found = certifyShape(renderer, { shape, form, conversations, seed });
    if (typeof found === "string") certificate.refused.push({ shape, why: found });
    else certificate.shapes[shape] = found;
    options.onProgress?.(SHAPES.indexOf(shape) + 1, SHAPES.length);
  }
  return certificate;
}

interface ShapeTrial {
  shape: Shape;
  form: ProbeForm;
  conversations: number;
  seed: number;
}

function certifyShape(renderer: PromptRenderer, trial: ShapeTrial): CertifiedShape | string {
  const { shape, form, conversations, seed } = trial;
  const impossible = unprobeable(shape, form);
  if (impossible !== null) return impossible;
  let certified: CertifiedShape | null = null;
  for (let index = 0; index < conversations; index++) {
    let tail: Tail | string;
    try {
      tail = tryProbe(renderer, probeConversation(shape, form, seed, index), form);
    } catch (error) {
      return `conversation ${index}: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (typeof tail === "string") return `conversation ${index}: ${tail}`;
    certified ??= { conversations: 0, stop_id: tail.stop_id, seam_ids: [...tail.seam_ids] };
    if (certified.stop_id !== tail.stop_id || certified.seam_ids.join() !== [...tail.seam_ids].join()) {
      return `conversation ${index}: the template ends the turn in more than one way`;
    }
    certified.conversations++;
  }
  return certified ?? "no conversation was tried";
}

/** The junction's tail when the probe holds, else why it does not. */
function tryProbe(renderer: PromptRenderer, probe: Probe, form: ProbeForm): Tail | string {
  const { history, suffix, tools } = probe;
  const prompt = renderer.render(history, tools).ids;
  const full = renderer.render([...history, probe.reply, ...suffix], tools).ids;
  const rewritten = firstDifference(prompt, full);
  if (rewritten !== null) return `the template rewrites history: ${show(renderer, prompt, full, rewritten)}`;
  const stopAt = full.findIndex((id, i) => i >= prompt.length && renderer.stopIds.includes(id));
  if (stopAt < 0) return "the template does not end the turn with a stop id";
  const sampled = full.slice(prompt.length, probe.end === "stop" ? stopAt + 1 : stopAt);
  const parsed = renderer.parse(sampled, { promptTail: prompt, promptTokens: prompt.length, tools });
  if (parsed.malformed || !sameReply(parsed.message, probe.reply)) {
    return "the template does not show the sampled turn as it was sampled (it drops or rewrites part of it)";
  }
  const renamed = renameResults(suffix, probe.reply, parsed.message);
  const checkpoint = joinIds([prompt, sampled]);
  const tail = renderTail(renderer, parsed.message, renamed, tools);
  if (tail === null) return "the template does not end the turn with a stop id";
  const wanted = renderer.render([...history, inForm(parsed.message, form), ...renamed], tools).ids;
  const joined = joinAtCheckpoint(checkpoint, probe.end, tail, renderer.stopIds);
  if ("fallback" in joined) return "the sampled end of the turn is not the template's";
  const differs =
    firstDifference(joined.ids, wanted) ?? (joined.ids.length === wanted.length ? null : joined.ids.length);
  if (differs !== null) return `not the full render: ${show(renderer, joined.ids, wanted, differs)}`;
  return survivesOtherTokens(renderer, prompt, sampled, probe, tail)
    ? tail
    : "a checkpoint of other tokens did not survive";
}

/** The same turn in other tokens of the same text: the checkpoint stays as it is, the tail is the same. */
function survivesOtherTokens(
  renderer: PromptRenderer,
  prompt: Int32Array,
  sampled: Int32Array,
  probe: Probe,
  tail: Tail,
): boolean {
  const other = joinIds([prompt, splitTokens(renderer, sampled)]);
  const joined = joinAtCheckpoint(other, probe.end, tail, renderer.stopIds);
  if ("fallback" in joined) return false;
  const stop = probe.end === "stop" ? 0 : 1;
  return (
    firstDifference(other, joined.ids) === null &&
    joined.ids.length === other.length + stop + tail.ids.length &&
    firstDifference(tail.ids, joined.ids.slice(other.length + stop)) === null
  );
}

/** Every other text token spelled byte by byte. */
function splitTokens(renderer: PromptRenderer, ids: Int32Array): Int32Array {
  const added = new Set(renderer.tokenizer.added.map((token) => token.id));
  const parts = Array.from(ids, (id, i) => {
    const bytes = renderer.tokenizer.bytes.bytesOf(id);
    if (i % 2 === 1 || added.has(id) || bytes.length < 2) return Int32Array.of(id);
    const single = Array.from(bytes, (byte) => renderer.tokenizer.idOfByte(byte));
    return Int32Array.from(single);
  });
  return joinIds(parts);
}

/** Index where `prefix` stops being the beginning of `ids`; null when it is. */
function firstDifference(prefix: Int32Array, ids: Int32Array): number | null {
  const at = prefix.findIndex((id, i) => ids[i] !== id);
  return at < 0 ? null : at;
}

function show(renderer: PromptRenderer, left: Int32Array, right: Int32Array, at: number): string {
  const around = (ids: Int32Array): string => JSON.stringify(renderer.decode(ids.slice(Math.max(0, at - 4), at + 6)));
  return `${around(left)} became ${around(right)} at token ${at}`;
}

/** The suffix with the call ids that the parser gave. */
function renameResults(suffix: readonly Message[], wanted: Message, parsed: Message): Message[] {
  const names = new Map(wanted.tool_calls?.map((call, i) => [call.id, parsed.tool_calls?.[i]?.id ?? call.id]));
  return suffix.map((message) =>
    message.tool_call_id === undefined
      ? message
      : { ...message, tool_call_id: names.get(message.tool_call_id) ?? message.tool_call_id },
  );
}
