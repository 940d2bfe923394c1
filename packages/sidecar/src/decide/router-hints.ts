/**
 * What a router in front of several engines may go by: which calls belong together, and how many leading prompt ids the engine that served the last
 * one still has in its cache. Engines ignore headers that they do not know.
 */
import { expectedPrefix } from "@tito/continuity";
import type { NeutralRequest } from "../dialect/neutral.js";
import { toolsDigest } from "../dialect/tools-digest.js";
import type { IncomingCall } from "../gate/incoming-call.js";
import type { Engine } from "../prompt/engine.js";
import type { PromptPlan } from "../sample/prompt-plan.js";
import type { Trajectory } from "../trajectory/trajectory.js";
import { conversationOf, laneOf } from "./decide.js";

/** Headers by which routers keep a session on one engine: vLLM's production stack, SGLang's model gateway, Fireworks. */
const AFFINITY = ["x-session-id", "x-smg-routing-key", "x-session-affinity"];

interface HintedCall {
  trajectory: Trajectory;
  request: NeutralRequest;
  incoming: IncomingCall;
  engine: Engine;
}

/** Main agent, summaries and side calls of a trajectory share their prompt's beginning; a sub-agent has a prompt of its own. */
export function routerHints(context: HintedCall, plan: PromptPlan): Record<string, string> {
  const { trajectory, request, incoming, engine } = context;
  if (!engine.config.routerHints) return {};
  const { lane } = laneOf(incoming, request, trajectory).verdict;
  const key = lane.startsWith("sub:") ? `${trajectory.id}.${headerText(lane.slice("sub:".length))}` : trajectory.id;
  const hints = Object.fromEntries(AFFINITY.map((name) => [name, key]));
  const tokens = expectedTokens(context, plan);
  return tokens === null ? hints : { ...hints, "x-tito-expected-prefix": String(tokens) };
}

function expectedTokens({ trajectory, request, incoming }: HintedCall, plan: PromptPlan): number | null {
  const { state, harness } = conversationOf(trajectory, incoming.headers);
  if (plan.promptIds !== null) return expectedPrefix(state, { ids: plan.promptIds });
  return expectedPrefix(state, {
    messages: request.messages,
    tools_sha256: toolsDigest(request.tools).toString("hex"),
    renderer_contract: plan.rendererContract,
    harness,
  });
}

const HEADER_CHARS_MAX = 128;

/** Lane names come from request headers. */
function headerText(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, HEADER_CHARS_MAX);
}
