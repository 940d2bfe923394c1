/**
 * Incremental mode: the next prompt is the exact checkpoint, a certified junction and the rendered suffix. Whatever stands against it is a reason for
 * full history, never an error; docs/incremental.md lists them.
 */
import { commonPrefix, findCheckpoint, historyMessages, lineIds } from "@tito/continuity";
import type { DecisionEvidence } from "@tito/format";
import type { Certificate, Renderer, RenderOptions } from "@tito/renderer";
import { toolsDigest } from "../dialect/tools-digest.js";
import type { PromptPlan } from "../sample/prompt-plan.js";
import type { PromptInput } from "./source.js";

export interface Incremental {
  certificate: Certificate;
  /** True for the calls that are rendered in full as well. */
  shadowed(): boolean;
}

type JoinedPrompt = Pick<PromptPlan, "junction" | "specialTextEscaped" | "checkpoint" | "evidence"> & {
  promptIds: Int32Array;
};

export type IncrementalOutcome =
  | { kind: "joined"; prompt: JoinedPrompt }
  | { kind: "full_history"; evidence: Pick<DecisionEvidence, "fallback"> };

/** Every `1 / fraction`th call, evenly: the same calls for the same fraction. */
export function shadowing(fraction: number): () => boolean {
  let sum = 0;
  return () => {
    sum += fraction;
    if (sum < 1 - 1e-9) return false;
    sum -= 1;
    return true;
  };
}

/** The joined prompt of a request, or why it must be rendered in full. The state is read before anything is waited for. */
export async function incrementalPrompt(
  renderer: Renderer,
  incremental: Incremental,
  input: PromptInput,
  options: RenderOptions,
): Promise<IncrementalOutcome> {
  const { request, conversation } = input;
  const { messages, tools } = request;
  // Nothing was said yet: there is nothing to build on, and nothing is missed.
  if (!messages.some((message) => message.role === "assistant")) return { kind: "full_history", evidence: {} };
  if (options.templateArguments !== undefined)
    return fallback("template_arguments", "the request gives arguments to the template; the certificate knows none");
  const { state, harness, endings } = conversation;
  const found = findCheckpoint(state, {
    messages,
    tools_sha256: toolsDigest(tools).toString("hex"),
    renderer_contract: renderer.contractId,
    harness,
  });
  if (found.kind === "fallback") return fallback(found.reason, found.detail);
  const turn = state.turns.get(found.call_id)!;
  const ending = endings.get(found.call_id)!;
  const checkpoint = lineIds(state, found);
  const built = await renderer.buildIncrementalPrompt(incremental.certificate, {
    checkpoint,
    ...ending,
    history: historyMessages(turn.history),
    reply: turn.reply,
    suffix: messages.slice(found.from),
    tools,
  });
  if ("fallback" in built) return fallback(built.fallback, built.detail);
  const { ids, seam_ids, kind, certificate, special_text_escaped } = built;
  const shadow = incremental.shadowed() ? { shadow: await shadowOf(renderer, input, ids) } : {};
  return {
    kind: "joined",
    prompt: {
      promptIds: ids,
      junction: { kind, seam_ids, certificate },
      specialTextEscaped: special_text_escaped,
      checkpoint: found.call_id,
      evidence: shadow,
    },
  };
}

const DETAIL_MAX = 500;

function fallback(reason: string, detail: string): IncrementalOutcome {
  return { kind: "full_history", evidence: { fallback: { reason, detail: detail.slice(0, DETAIL_MAX) } } };
}

/** What full history would have sent for the same request. */
async function shadowOf(renderer: Renderer, { request }: PromptInput, ids: Int32Array) {
  const full = (await renderer.render(request.messages, request.tools)).ids;
  return { full_tokens: full.length, match_tokens: commonIds(ids, full) };
}

function commonIds(a: Int32Array, b: Int32Array): number {
  const length = Math.min(a.length, b.length);
  return commonPrefix({ ids: a, start: 0 }, { ids: b, start: 0 }, length);
}
