/** The next prompt in incremental mode: exact checkpoint, certified junction, rendered suffix; or the reason for full history. */
import type { Message, ToolDefinition } from "@tito/format";
import type { PromptRenderer, RenderOptions } from "../prompt-renderer.js";
import { type Certificate, certificateId, verifyCertificate } from "./certificate.js";
import { joinAtCheckpoint, renderTail } from "./join.js";
import { hasReasoning, isShape, type Shape, type ShapelessReason, shapeOf, type TurnEnd } from "./shapes.js";

export interface IncrementalRequest {
  /** Exact prompt ids and sampled ids of the turn that is continued. */
  checkpoint: Int32Array;
  /** How that turn's sampling ended. */
  end: TurnEnd;
  /** Its output did not parse: then its message does not say where its blocks end. */
  malformed: boolean;
  /** Messages before that turn, as the harness sent them. */
  history: readonly Message[];
  /** The turn's own message as it was returned to the harness. */
  reply: Message;
  /** What the harness appended to it. */
  suffix: readonly Message[];
  tools: readonly ToolDefinition[];
  options?: RenderOptions;
}

export type FallbackReason =
  | ShapelessReason
  | "not_certified"
  | "stop_mismatch"
  | "junction_differs"
  | "turn_malformed"
  | "template_refuses";

export type IncrementalPrompt =
  | { ids: Int32Array; seam_ids: Int32Array; kind: Shape; certificate: string; special_text_escaped: boolean }
  | { fallback: FallbackReason; detail: string };

/**
 * Builds the prompt. The result begins with `checkpoint`, unchanged.
 * @throws TitoError `bundle_invalid` when the certificate is not about this bundle; everything else is a fallback with its reason.
 */
export function buildIncrementalPrompt(
  renderer: PromptRenderer,
  certificate: Certificate,
  request: IncrementalRequest,
): IncrementalPrompt {
  verifyCertificate(certificate, renderer.contractId);
  if (request.malformed) return { fallback: "turn_malformed", detail: "the sampled turn did not parse" };
  const shape = shapeOf(request.history, request.reply, request.end, request.suffix);
  if (!isShape(shape)) return { fallback: shape, detail: request.suffix.map((message) => message.role).join(", ") };
  const certified = certificate.shapes[shape];
  if (certified === undefined) {
    const why = certificate.refused.find((refusal) => refusal.shape === shape)?.why;
    return { fallback: "not_certified", detail: `${shape}: ${why ?? "no conversation of this shape was tested"}` };
  }
  const rewritten = rewritesReasoning(certificate, request);
  if (rewritten !== null) return { fallback: "not_certified", detail: rewritten };
  return joinRequest(renderer, request, shape, certified, certificateId(certificate));
}

/**
 * A turn that was cut is followed by a user message, behind which a template may leave out reasoning. Cut turns are probed in the family's own
 * form, which need not hold any: with reasoning, the shape of a whole turn with reasoning must be certified too.
 */
function rewritesReasoning(certificate: Certificate, { history, reply, end }: IncrementalRequest): string | null {
  if (end === "stop" || !hasReasoning(history, reply)) return null;
  const shape: Shape = "user_turn_after_reasoning";
  if (certificate.shapes[shape] !== undefined) return null;
  return `${shape}: ${certificate.refused.find((refusal) => refusal.shape === shape)?.why ?? "not tested"}`;
}

function joinRequest(
  renderer: PromptRenderer,
  request: IncrementalRequest,
  shape: Shape,
  certified: { stop_id: number; seam_ids: number[] },
  certificate: string,
): IncrementalPrompt {
  const tail = tryTail(renderer, request);
  if (typeof tail === "string") return { fallback: "template_refuses", detail: tail };
  if (tail.stop_id !== certified.stop_id || !sameIds(tail.seam_ids, certified.seam_ids)) {
    return { fallback: "junction_differs", detail: `stop id ${tail.stop_id}, certified is ${certified.stop_id}` };
  }
  const joined = joinAtCheckpoint(request.checkpoint, request.end, tail, renderer.stopIds);
  if ("fallback" in joined) {
    return {
      fallback: joined.fallback,
      detail: `the turn ended with id ${request.checkpoint.at(-1)}, the template wants ${tail.stop_id}`,
    };
  }
  return { ...joined, kind: shape, certificate, special_text_escaped: tail.special_text_escaped };
}

function tryTail(renderer: PromptRenderer, { reply, suffix, tools, options }: IncrementalRequest) {
  try {
    return renderTail(renderer, reply, suffix, tools, options) ?? "the template does not end the turn with a stop id";
  } catch (error) {
    return String(error);
  }
}

const sameIds = (a: Int32Array, b: readonly number[]): boolean =>
  a.length === b.length && b.every((id, i) => a[i] === id);
