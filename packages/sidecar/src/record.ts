/**
 * Stop 6: what happened, as records. A turn is durable before its answer is released; intents and deliveries are written, not synced.
 * Here too it is said what a reply without evidence means: an error, or a flagged answer where the user chose so.
 */
import { commit, type EngineTurn, isCheckpointable } from "@tito/continuity";
import type { FinishReason, TurnRecord, VersionSpan } from "@tito/format";
import { promptDigest, TitoError } from "@tito/format";
import type { CallContext, IncomingCall } from "./call.js";
import { laneOf, place, toolsDigest, type UnplacedTurn } from "./decide.js";
import type { DialectError, ReplyEvent } from "./dialect/neutral.js";
import { assembleMessage, isMalformed } from "./message.js";
import type { PromptPlan } from "./prompt/source.js";
import type { Delivery } from "./release.js";
import type { Outcome } from "./sample/sample.js";
import type { Sampled } from "./sample/sampled.js";
import type { Trajectory } from "./trajectory.js";

/** Request headers that are worth keeping and can hold no secret. Everything else is dropped unseen. */
const HEADERS_KEPT = new Set([
  "user-agent",
  "x-stainless-retry-count",
  "x-stainless-lang",
  "x-stainless-package-version",
  "x-stainless-helper-method",
  "x-session-id",
  "x-session-affinity",
  "x-parent-session-id",
  "session_id",
  "session-id",
  "thread-id",
  "x-client-request-id",
  "x-codex-window-id",
  "x-codex-parent-thread-id",
  "x-openai-subagent",
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "anthropic-version",
  "anthropic-beta",
]);
const HEADER_CHARS_MAX = 512;

type Answered = Extract<Outcome, { kind: "answered" }>;

export interface OutcomeRecord {
  outcome: Answered;
  /** All events of the reply, as far as it went. */
  events: readonly ReplyEvent[];
  /** The engine's weight version before the call, when it tells. */
  versionBefore: string | null;
}

/** Notes a call before the engine is asked. */
export function recordIntent(trajectory: Trajectory, callId: string, incoming: IncomingCall): void {
  const headers: Record<string, string> = {};
  for (const name of HEADERS_KEPT) {
    const value = incoming.headers.get(name)?.[0];
    if (value !== undefined) headers[name] = value.slice(0, HEADER_CHARS_MAX);
  }
  const path = incoming.path.slice(0, HEADER_CHARS_MAX);
  trajectory.writer.writeIntent({
    call_id: callId,
    dialect: incoming.dialect,
    path,
    headers,
    body: incoming.body,
    received_ms: incoming.receivedMs,
  });
}

/** Records what a call brought. Resolves with the error that the harness must get in place of the answer, or null. */
export async function recordOutcome(
  context: CallContext,
  plan: PromptPlan,
  callId: string,
  result: OutcomeRecord,
): Promise<DialectError | null> {
  const { sampled, failure } = result.outcome;
  const { trajectory, engine, client } = context;
  const flag = engine.config.onUncaptured === "flag";
  let reason = "capture_degraded";
  try {
    if (sampled.promptIds !== null && sampled.ids.length > 0) {
      await recordTurn(context, plan, callId, { ...result, sampled: { ...sampled, promptIds: sampled.promptIds } });
      return null;
    }
    reason = uncapturedReason(sampled);
    recordUncaptured(trajectory, {
      callId,
      reason,
      status: failure === null ? 200 : null,
      detail: failure?.message ?? reason,
      lostTokens: failure === null,
    });
    if (failure !== null) return null;
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    trajectory.log("error", "not_recorded", { call: callId, code: error.code, detail: error.message });
    trajectory.uncaptured += 1;
  }
  if (flag) {
    client.setHeader("x-tito-uncaptured", reason);
    return null;
  }
  const message =
    reason === "capture_degraded"
      ? "the answer could not be recorded, so it is withheld"
      : "the engine's answer carried no token ids, so it is withheld";
  return { kind: "unavailable", message, retryable: false };
}

function uncapturedReason(sampled: Sampled): string {
  const cause = (
    ["aborted_by_seal", "client_gone", "aborted", "engine_error", "stream_cut", "unparsed_chunk"] as const
  ).find((defect) => sampled.defects.includes(defect));
  return cause ?? (sampled.promptIds === null ? "prompt_ids_missing" : "sampled_ids_missing");
}

interface TurnInput extends OutcomeRecord {
  sampled: Sampled & { promptIds: Int32Array };
}

/** Resolves when the turn is durable. @throws TitoError when it can not be recorded. */
async function recordTurn(context: CallContext, plan: PromptPlan, callId: string, input: TurnInput): Promise<void> {
  const { trajectory, request } = context;
  const { sampled } = input;
  const weightVersions = await versionSpans(context, input);
  const { verdict, harness } = laneOf(context);
  const unplaced = unplacedTurn(context, plan, { ...input, callId, weightVersions, lane: verdict });
  const turn: EngineTurn = {
    call_id: callId,
    prompt_ids: sampled.promptIds,
    sampled_ids: sampled.ids,
    checkpointable: isCheckpointable(unplaced),
    lane: verdict.lane,
    messages: request.messages,
    reply: unplaced.message,
    tools_sha256: Buffer.from(unplaced.tools_sha256).toString("hex"),
    renderer_contract: plan.rendererContract,
    retry_of: context.retryOf,
    harness,
    arrived_after: context.arrivedAfter,
  };
  const durable = await trajectory.inOrder(async () => {
    const { decision, record } = place(trajectory, turn, unplaced, request.tools);
    const open =
      decision.kind === "append"
        ? null
        : { segment: decision.segment, parent: decision.parent, continues: decision.continues };
    const promise = trajectory.writer.commitTurn(
      open === null ? { segment: decision.segment, turn: record } : { open, turn: record },
    );
    // A record that can not be written as it is rejects at once; then nothing of it may be remembered.
    let refused: { error: unknown } | null = null;
    promise.catch((error: unknown) => {
      refused = { error };
    });
    await null;
    if (refused === null) {
      trajectory.lastCommit += 1;
      commit(trajectory.continuity, turn, decision, trajectory.lastCommit);
      trajectory.noteTurn(decision, turn);
    }
    return { promise };
  });
  await durable.promise;
}

function unplacedTurn(
  context: CallContext,
  plan: PromptPlan,
  input: TurnInput & {
    callId: string;
    weightVersions: VersionSpan[];
    lane: { lane: TurnRecord["lane"]; evidence: TurnRecord["lane_evidence"] };
  },
): UnplacedTurn {
  const { request, engine, incoming } = context;
  const { sampled, outcome } = input;
  const message = assembleMessage(input.events);
  return {
    call_id: input.callId,
    lane: input.lane.lane,
    lane_evidence: input.lane.evidence,
    dialect: request.dialect,
    stream: request.stream ? (plan.stream ? "live" : "synthetic") : "none",
    tools_sha256: toolsDigest(request.tools),
    sampling: plan.sampling,
    logprob_mode: engine.profile.logprobMode,
    prompt_mode: plan.promptMode,
    prompt_sha256: promptDigest(sampled.promptIds),
    sampled_ids: sampled.ids,
    logprobs: sampled.logprobs,
    logprob_gaps: sampled.gaps,
    finish_reason: finishReason(sampled, (message.tool_calls?.length ?? 0) > 0),
    stop_reason: sampled.stopReason,
    defects: sampled.defects,
    usage: {
      prompt_tokens: sampled.usage.prompt,
      completion_tokens: sampled.usage.completion,
      cached_tokens: sampled.usage.cached,
    },
    weight_versions: input.weightVersions,
    engine: { kind: engine.profile.kind, version: engine.profile.version, model: sampled.model ?? engine.config.model },
    renderer_contract: plan.rendererContract,
    junction: plan.junction,
    message,
    malformed: isMalformed(message),
    special_text_escaped: plan.specialTextEscaped,
    upstream_request_id: sampled.upstreamId,
    times: {
      received_ms: incoming.receivedMs,
      sent_ms: outcome.times.sentMs,
      first_token_ms: outcome.times.firstTokenMs,
      finished_ms: outcome.times.finishedMs,
    },
  };
}

function finishReason(sampled: Sampled, hasCalls: boolean): FinishReason {
  switch (sampled.finish) {
    case "length":
    case "abort":
    case "error":
      return sampled.finish;
    case "stop":
    case "tool_calls":
      return hasCalls ? "tool_calls" : "stop";
    default:
      if (sampled.defects.includes("client_gone") || sampled.defects.includes("aborted_by_seal")) return "abort";
      return sampled.defects.includes("engine_error") ? "error" : "unknown";
  }
}

/** From the reply, else what the engine told before and after, else the flag, else `unknown`. Spans cover all sampled ids. */
async function versionSpans(context: CallContext, input: TurnInput): Promise<VersionSpan[]> {
  const { engine } = context;
  const { versions, ids } = input.sampled;
  const covers =
    versions.length > 0 &&
    versions.at(-1)!.end === ids.length &&
    versions.every((span, index) => span.start === (versions[index - 1]?.end ?? 0) && span.end > span.start);
  if (covers) return versions;
  const after = await engine.weightVersion();
  const before = input.versionBefore ?? after;
  const told = before === null || after === null || before === after ? before : `${before}..${after}`;
  return [{ version: told ?? engine.config.weightVersion ?? "unknown", start: 0, end: ids.length }];
}

export interface Uncaptured {
  callId: string;
  reason: string;
  status: number | null;
  detail: string;
  lostTokens: boolean;
}

/** Notes a call that ended without token ids. */
export function recordUncaptured(trajectory: Trajectory, call: Uncaptured): void {
  if (call.lostTokens) trajectory.uncaptured += 1;
  const { callId, reason, status, lostTokens } = call;
  const detail = call.detail.slice(0, 2000);
  trajectory.writer.writeJournal("uncaptured", {
    call_id: callId,
    reason,
    status,
    detail,
    lost_tokens: lostTokens,
    at_ms: Date.now(),
  });
}

export function recordDelivery(trajectory: Trajectory, callId: string, delivery: Delivery): void {
  const { outcome, bytes, status, detail } = delivery;
  trajectory.writer.writeDelivery({ call_id: callId, outcome, bytes, status, detail, at_ms: Date.now() });
}

export function recordReplay(
  trajectory: Trajectory,
  replay: { callId: string; replayId: string; matchedBy: string },
): void {
  const { callId, replayId, matchedBy } = replay;
  trajectory.writer.writeJournal("replay", {
    call_id: callId,
    replay_call_id: replayId,
    matched_by: matchedBy,
    at_ms: Date.now(),
  });
}
