/**
 * Stop 6: what happened, as records. A turn is durable before its answer is released; intents and deliveries are written, not synced.
 * Here too it is said what a reply without evidence means: an error, or a flagged answer where the user chose so.
 */
import { commit, type EngineTurn, type LaneVerdict } from "@tito/continuity";
import { lossesIn, TitoError, type ToolDefinition, type VersionSpan } from "@tito/format";
import { engineTurn, laneOf, place, type UnplacedTurn } from "../decide/decide.js";
import { textsOfDrift } from "../decide/drift-texts.js";
import { type TurnFacts, toldVersions, unplacedTurn, type WholeSampled } from "../decide/turn.js";
import { assembleMessage } from "../dialect/message.js";
import type { DialectError, ReplyEvent } from "../dialect/neutral.js";
import type { IncomingCall } from "../gate/incoming-call.js";
import type { PromptEvidence, PromptPlan, TextOf } from "../sample/prompt-plan.js";
import type { Outcome } from "../sample/sample.js";
import type { Sampled } from "../sample/sampled.js";
import { versionRange } from "../sample/weight-version.js";
import type { Trajectory } from "../trajectory/trajectory.js";
import { endingOf, type TurnLog } from "../trajectory/turn-log.js";
import type { CallContext } from "./call-context.js";
import type { Delivery } from "./release.js";

/** Request headers that are worth keeping: they say which client, session and sub-agent asks. Everything else is dropped unseen. */
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
  "x-codex-turn-metadata",
  "x-codex-parent-thread-id",
  "x-openai-subagent",
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "anthropic-version",
  "anthropic-beta",
]);
/** Codex tells the kind of its request in a header of about 1000 characters. */
const HEADER_CHARS_MAX = 4096;
/** User and password of a URL: a header may name a repository. */
const CREDENTIALS = /(:\/\/)[^/@\s"]*@/g;

type Answered = Extract<Outcome, { kind: "answered" }>;

export interface OutcomeRecord {
  outcome: Answered;
  /** All events of the reply, as far as it went. */
  events: readonly ReplyEvent[];
  /** The output did not parse; null: only the message can tell. */
  malformed: boolean | null;
  /** The engine's weight version before the call, when it tells. */
  versionBefore: string | null;
}

/** Notes a call before the engine is asked. */
export function recordIntent(
  log: Pick<TurnLog, "writer">,
  callId: string,
  incoming: Omit<IncomingCall, "codec">,
): void {
  const headers: Record<string, string> = {};
  for (const name of HEADERS_KEPT) {
    const value = incoming.headers.get(name)?.[0];
    if (value !== undefined) headers[name] = value.slice(0, HEADER_CHARS_MAX).replace(CREDENTIALS, "$1");
  }
  const path = incoming.path.slice(0, HEADER_CHARS_MAX);
  log.writer.writeIntent({
    call_id: callId,
    dialect: incoming.dialect,
    path,
    headers,
    body: incoming.body,
    received_ms: incoming.receivedMs,
  });
}

/**
 * What a recorded outcome means for the harness: an answer that is on record; one that is not, which goes out flagged where the user chose so;
 * or the error that it gets in place of the answer.
 */
export type Verdict = { kind: "recorded" } | { kind: "unrecorded" } | { kind: "withheld"; error: DialectError };

/** Records what a call brought. An outcome that failed by itself is recorded as far as it went; its failure stays the caller's. */
export async function recordOutcome(
  context: CallContext,
  plan: PromptPlan,
  callId: string,
  result: OutcomeRecord,
): Promise<Verdict> {
  const { sampled, failure } = result.outcome;
  const { trajectory, engine, client } = context;
  if (failure === null) noteStream(context, plan, sampled.defects);
  const flag = engine.config.onUncaptured === "flag";
  let reason = "capture_degraded";
  try {
    if (isTurn(sampled) && (failure === null || sampled.ids.length > 0)) {
      await recordTurn(context, plan, callId, { ...result, sampled });
      trajectory.noteLoss(callId, lossesIn(sampled.defects));
      return { kind: "recorded" };
    }
    reason = failure?.kind === "context_overflow" ? OVERFLOW_REASON : uncapturedReason(sampled);
    recordUncaptured(trajectory, {
      callId,
      reason,
      status: failure === null ? 200 : null,
      detail: failure?.message ?? reason,
      lostTokens: failure === null,
    });
    if (failure !== null) return { kind: "unrecorded" };
    trajectory.noteLoss(callId, [reason]);
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    trajectory.log("error", "not_recorded", { call: callId, code: error.code, detail: error.message });
    trajectory.uncaptured += 1;
  }
  if (flag) {
    client.setHeader("x-tito-uncaptured", reason);
    return { kind: "unrecorded" };
  }
  const error: DialectError =
    reason === "capture_degraded"
      ? { kind: "degraded", message: "the answer could not be recorded, so it is withheld", retryable: false }
      : {
          kind: "unavailable",
          message: "the engine's answer carried no token ids, so it is withheld",
          retryable: false,
        };
  return { kind: "withheld", error };
}

/** An engine that loses ids again and again in its streams is asked for whole bodies from here on. */
function noteStream({ engine, trajectory }: CallContext, plan: PromptPlan, defects: readonly string[]): void {
  if (!engine.streams.note(plan.stream, defects)) return;
  const { reason } = engine.streams;
  const detail =
    reason === null
      ? "whole answers lose as much as streams did: the engine is asked to stream again"
      : "streamed answers lost ids again and again: the engine is asked for whole bodies from here on";
  trajectory.log("warn", "stream_fallback", { detail, reason });
}

/** There are prompt ids, and sampled ids or an engine that says that there are none. */
export function isTurn(sampled: Sampled): sampled is WholeSampled {
  return sampled.promptIds !== null && (sampled.ids.length > 0 || !sampled.defects.includes("sampled_ids_missing"));
}

/** Of a call that did not fit the context window, whether we or the engine said so. */
export const OVERFLOW_REASON = "refused_context_overflow";

export function uncapturedReason(sampled: Sampled): string {
  const cause = (
    ["aborted_by_seal", "client_gone", "aborted", "engine_error", "stream_cut", "unparsed_chunk"] as const
  ).find((defect) => sampled.defects.includes(defect));
  return cause ?? (sampled.promptIds === null ? "prompt_ids_missing" : "sampled_ids_missing");
}

interface TurnInput extends OutcomeRecord {
  sampled: WholeSampled;
}

/** Resolves when the turn is durable. @throws TitoError when it can not be recorded. */
async function recordTurn(context: CallContext, plan: PromptPlan, callId: string, input: TurnInput): Promise<void> {
  const { trajectory, request, retryOf, arrivedAfter } = context;
  const { sampled } = input;
  const weightVersions = await versionSpans(context, input);
  const { verdict, harness } = laneOf(context.incoming, request, trajectory);
  const facts = turnFacts(context, plan, callId, { ...input, weightVersions, verdict });
  const unplaced = unplacedTurn(facts, sampled);
  const turn = engineTurn(unplaced, { promptIds: sampled.promptIds, request, retryOf, harness, arrivedAfter });
  const { durable } = await putOnRecord(trajectory, turn, unplaced, request.tools, plan);
  await durable;
}

/**
 * Gives a turn its place and appends it, after every turn that came before. Resolves when its place is taken; `durable` when it is synced.
 * `durable` rejects with a TitoError when it can not be recorded.
 */
export function putOnRecord(
  log: TurnLog,
  turn: EngineTurn,
  unplaced: UnplacedTurn,
  tools: ToolDefinition[],
  prompt?: PromptEvidence & { textOf: TextOf | null },
): Promise<{ durable: Promise<unknown> }> {
  return log.inOrder(async () => {
    const first = place(log, turn, unplaced, tools, prompt);
    const texts = await textsOfDrift(log.continuity, turn, first.decision, prompt?.textOf ?? null);
    const { decision, record } = texts === null ? first : place(log, turn, unplaced, tools, prompt, texts);
    const open =
      decision.kind === "append"
        ? null
        : { segment: decision.segment, parent: decision.parent, continues: decision.continues };
    const durable = log.writer.commitTurn(
      open === null ? { segment: decision.segment, turn: record } : { open, turn: record },
    );
    // A record that can not be written as it is rejects at once; then nothing of it may be remembered.
    let refused: { error: unknown } | null = null;
    durable.catch((error: unknown) => {
      refused = { error };
    });
    await null;
    if (refused === null) {
      log.lastCommit += 1;
      commit(log.continuity, turn, decision, log.lastCommit);
      log.noteTurn(decision, turn, endingOf(unplaced));
      log.loss.turn(record);
    }
    return { durable };
  });
}

function turnFacts(
  context: CallContext,
  plan: PromptPlan,
  callId: string,
  input: TurnInput & { weightVersions: VersionSpan[]; verdict: LaneVerdict },
): TurnFacts {
  const { request, engine, incoming } = context;
  const { sampled, outcome, verdict } = input;
  return {
    call_id: callId,
    lane: verdict.lane,
    lane_evidence: verdict.evidence,
    dialect: request.dialect,
    stream: request.stream ? (plan.stream ? "live" : "synthetic") : "none",
    ...(plan.streamReason === null ? {} : { stream_reason: plan.streamReason }),
    tools: request.tools,
    sampling: plan.sampling,
    logprob_mode: engine.logprobMode(plan.sampling),
    prompt_mode: plan.promptMode,
    weight_versions: input.weightVersions,
    engine: { kind: engine.profile.kind, version: engine.profile.version, model: sampled.model ?? engine.config.model },
    renderer_contract: plan.rendererContract,
    junction: plan.junction,
    message: assembleMessage(input.events),
    malformed: input.malformed,
    special_text_escaped: plan.specialTextEscaped,
    times: {
      received_ms: incoming.receivedMs,
      sent_ms: outcome.times.sentMs,
      first_token_ms: outcome.times.firstTokenMs,
      finished_ms: outcome.times.finishedMs,
    },
  };
}

/** From the reply, else what the engine told before and after, else the flag, else `unknown`. Spans cover all sampled ids. */
async function versionSpans(context: CallContext, input: TurnInput): Promise<VersionSpan[]> {
  const { engine } = context;
  if (input.sampled.ids.length === 0) return [];
  const versions = toldVersions(input.sampled);
  if (versions !== null) return versions;
  const given = engine.config.weightVersion ?? "unknown";
  const before = input.versionBefore;
  const after = await engine.weightVersion();
  const told = after === null ? before : versionRange(before ?? given, after);
  return [{ version: told ?? given, start: 0, end: input.sampled.ids.length }];
}

export interface Uncaptured {
  callId: string;
  reason: string;
  status: number | null;
  detail: string;
  lostTokens: boolean;
}

/** Notes a call that ended without token ids. */
export function recordUncaptured(log: TurnLog, call: Uncaptured): void {
  if (call.lostTokens) log.uncaptured += 1;
  const { callId, reason, status, lostTokens } = call;
  const detail = call.detail.slice(0, 2000);
  log.withoutIds += 1;
  log.loss.uncaptured({ reason, lost_tokens: lostTokens });
  log.lastWithoutIds = `${reason}${status === null ? "" : ` (${status})`}: ${detail}`;
  log.writer.writeJournal("uncaptured", {
    call_id: callId,
    reason,
    status,
    detail,
    lost_tokens: lostTokens,
    at_ms: Date.now(),
  });
}

export function recordDelivery(log: Pick<TurnLog, "writer">, callId: string, delivery: Delivery): void {
  const { outcome, bytes, status, detail } = delivery;
  log.writer.writeDelivery({ call_id: callId, outcome, bytes, status, detail, at_ms: Date.now() });
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
