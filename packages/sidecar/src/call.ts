/**
 * One request of a harness, from body to delivery: the stops in a straight line. Nothing is locked while the engine works;
 * calls of one trajectory run side by side and are put in order when they are recorded.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { TitoError } from "@tito/format";
import { conversationOf } from "./decide/decide.js";
import { routerHints } from "./decide/router-hints.js";
import { decodeUtf8 } from "./dialect/chat-request.js";
import type { DialectCodec, DialectError } from "./dialect/neutral.js";
import type { IncomingCall } from "./gate/incoming-call.js";
import { cutObject } from "./json/slices.js";
import type { Engine } from "./prompt/engine.js";
import { fitLateSystem } from "./prompt/late-system.js";
import type { CallContext } from "./record/call-context.js";
import { LiveRelay } from "./record/live-relay.js";
import { OVERFLOW_REASON, recordDelivery, recordIntent, recordOutcome, recordUncaptured } from "./record/record.js";
import {
  type ChatWishes,
  chatWishes,
  encodedWriter,
  passthroughWriter,
  type ReplyWriter,
  wantsEvidence,
} from "./record/relay.js";
import { type Client, type Delivery, JSON_BODY } from "./record/release.js";
import { serveReplay } from "./record/serve-replay.js";
import { pause, retryDelay } from "./sample/attempts.js";
import { dialectError } from "./sample/engine-failure.js";
import type { PromptPlan } from "./sample/prompt-plan.js";
import { type Outcome, sample } from "./sample/sample.js";
import type { LiveCall } from "./trajectory/live-call.js";
import { replayKey } from "./trajectory/replay.js";
import { checkOpen, type Trajectory } from "./trajectory/trajectory.js";

/** Serves one call. Every failure becomes the dialect's own error; only a bug of ours is thrown. */
export async function serveCall(
  incoming: IncomingCall,
  trajectory: Trajectory,
  engine: Engine,
  client: Client,
): Promise<void> {
  let context: CallContext | null = null;
  let asked = false;
  try {
    checkOpen(trajectory);
    const request = await fitLateSystem(incoming.codec.parse(incoming.body), engine.takesLateSystem);
    const body = request.chatBody ?? cutObject(decodeUtf8(incoming.body));
    const key = replayKey(request.dialect, body, incoming.headers);
    const encoder = incoming.codec.stream(request);
    const arrivedAfter = trajectory.lastCommit;
    const wishes = chatWishes(request);
    context = { incoming, request, wishes, encoder, key, retryOf: null, arrivedAfter, trajectory, engine, client };
    if (request.stream) client.keepAlive(engine.config.keepaliveMs, () => encoder.keepalive());
    if (await serveReplay(context)) return;
    context.retryOf = trajectory.retryOf(key, incoming.headers);
    const conversation = conversationOf(trajectory, incoming.headers);
    const plan = await engine.source.prepare({ request, conversation });
    if (!plan.passthrough) refuseEvidence(context.wishes);
    if (plan.evidence.fallback !== undefined) trajectory.log("info", "full_history", { ...plan.evidence.fallback });
    asked = true;
    await attemptUntilFinal(context, plan, writerOf(context, plan));
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    if (error.code === "internal") trajectory.log("error", "call_failed", { detail: error.stack ?? error.message });
    if (!asked && REFUSALS.has(error.code)) recordRefusal(trajectory, incoming, error);
    await tellFailure(incoming.codec, context, client, dialectError(error));
  }
}

/** Calls that are refused before a token is spent, for what they are or because the engine could not be asked about them: they are on record, so that nobody wonders where they are. */
const REFUSALS: ReadonlySet<string> = new Set([
  "bad_request",
  "unsupported",
  "context_overflow",
  "upstream_unavailable",
  "upstream_rejected",
  "upstream_invalid",
]);

function recordRefusal(trajectory: Trajectory, incoming: IncomingCall, error: TitoError): void {
  const callId = trajectory.newCallId();
  recordIntent(trajectory, callId, incoming);
  const { code, status, message } = error;
  recordUncaptured(trajectory, { callId, reason: `refused_${code}`, status, detail: message, lostTokens: false });
}

async function attemptUntilFinal(
  context: CallContext,
  plan: PromptPlan,
  writerFor: (callId: string) => ReplyWriter,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    // Asked again each time: the trajectory may have been sealed while an orphan or the engine was waited for.
    checkOpen(context.trajectory);
    const againMs = await attemptOnce(context, plan, writerFor, attempt);
    if (againMs === null) return;
    await pause(againMs);
  }
}

/** Asks the engine once. Resolves with the delay before it is asked again, or null when the harness has its answer. */
async function attemptOnce(
  context: CallContext,
  plan: PromptPlan,
  writerFor: (callId: string) => ReplyWriter,
  attempt: number,
): Promise<number | null> {
  const { trajectory, engine, client, request } = context;
  const call = trajectory.startCall((orphan) => {
    trajectory.log("info", "orphaned", { call: orphan.callId });
    trajectory.replays.addOrphan(context.key, orphan);
  });
  const relay = new LiveRelay(plan, writerFor(call.callId), client, {
    name: call.callId,
    streamed: request.stream,
    keepaliveMs: engine.config.keepaliveMs,
    signal: call.signal,
  });
  try {
    trajectory.noteCall(context.key, call.callId, context.incoming.headers);
    recordIntent(trajectory, call.callId, context.incoming);
    call.waitFor(client);
    const versionBefore = await engine.weightVersion();
    const outcome = await sample(engine.upstream, plan, {
      headers: { ...routerHints(context, plan), ...engine.headers(trajectory) },
      signal: call.signal,
      hooks: relay,
      versions: { before: versionBefore, now: () => engine.weightVersion(), given: engine.config.weightVersion },
      counts: engine.profile.tellsCounts,
    });
    const againMs = relay.begun || call.signal.aborted ? null : delayOf(outcome, attempt);
    if (againMs !== null) trajectory.log("warn", "asked_again", { call: call.callId, attempt });
    if (outcome.kind === "refused") {
      const detail = outcome.error.message;
      recordUncaptured(trajectory, {
        callId: call.callId,
        reason: outcome.error.kind === "context_overflow" ? OVERFLOW_REASON : "engine_refused",
        status: outcome.status,
        detail,
        lostTokens: false,
      });
      if (againMs === null) await giveFailure(context, call, outcome.error);
      return againMs;
    }
    if (outcome.failure === null) await relay.end(outcome.sampled);
    const { events, malformed } = relay;
    const recording = recordOutcome(context, plan, call.callId, { outcome, events, malformed, versionBefore });
    const [verdict, rest] = await Promise.all([recording, restMeanwhile(relay, outcome)]);
    const failure = outcome.failure ?? (verdict.kind === "withheld" ? verdict.error : null);
    if (failure === null) await giveAnswer(context, call, { relay, rest, recorded: verdict.kind === "recorded" });
    else if (againMs === null) await giveFailure(context, call, failure);
    return failure === null ? null : againMs;
  } finally {
    relay.release();
    trajectory.endCall(call);
  }
}

/** What waits for the record, made ready while the disk works: the record's bytes are on their way to it by the next turn of the event loop. */
async function restMeanwhile(relay: LiveRelay, { failure, raw }: Extract<Outcome, { kind: "answered" }>) {
  if (failure !== null) return "";
  await nextTurn();
  return relay.rest(raw);
}

/** Stop 6, the second half: the record is durable, the harness may have the end of its answer. */
async function giveAnswer(
  context: CallContext,
  call: LiveCall,
  { relay, rest, recorded }: { relay: LiveRelay; rest: string; recorded: boolean },
): Promise<void> {
  const { client, request, trajectory, key } = context;
  const whole = { status: 200, headers: JSON_BODY };
  const delivery = await client.finish(rest, request.stream ? undefined : whole);
  finishDelivery(context, call.callId, delivery);
  if (delivery.outcome === "delivered") return;
  // A replay tells of a turn: an answer that is on no record is sampled anew.
  if (!recorded) return abandon(context, call);
  const answer = { callId: call.callId, events: relay.events, reasoningKey: relay.reasoningKey };
  const untaken = call.orphan === null || trajectory.replays.removeOrphan(key, call.orphan);
  if (untaken) trajectory.replays.keep(key, answer);
  else call.settle(answer);
}

async function giveFailure(context: CallContext, call: LiveCall, error: DialectError): Promise<void> {
  abandon(context, call);
  const delivery = await tellFailure(context.incoming.codec, context, context.client, error);
  finishDelivery(context, call.callId, delivery);
}

/** Nobody can have this call's answer any more; whoever waits for it asks the engine. */
function abandon(context: CallContext, call: LiveCall): void {
  if (call.orphan !== null) context.trajectory.replays.removeOrphan(context.key, call.orphan);
}

function finishDelivery(context: CallContext, callId: string, delivery: Delivery): void {
  context.trajectory.noteDelivery(callId, delivery.outcome);
  // A harness that read its answer after the seal: no record, which means unknown.
  if (context.trajectory.phase !== "sealed") recordDelivery(context.trajectory, callId, delivery);
  const { outcome, bytes, status } = delivery;
  context.trajectory.log("info", outcome, {
    call: callId,
    status,
    bytes,
    ms: Date.now() - context.incoming.receivedMs,
  });
}

/** The dialect's HTTP error; once a 200 is out, its in-stream error, or, of a body that was kept alive, a broken transfer. */
async function tellFailure(
  codec: DialectCodec,
  call: Pick<CallContext, "request" | "encoder"> | null,
  client: Client,
  error: DialectError,
): Promise<Delivery> {
  if (client.committed && call !== null) {
    if (call.request.stream) return client.finish(call.encoder.error(error));
    return client.breakOff(error.message);
  }
  const { status, body, headers } = codec.error(error);
  return client.finish(body, { status, headers });
}

function delayOf(outcome: Outcome, attempt: number): number | null {
  const error = outcome.kind === "refused" ? outcome.error : outcome.failure;
  return error === null ? null : retryDelay(error, attempt);
}

function writerOf(context: CallContext, plan: PromptPlan): (callId: string) => ReplyWriter {
  const { request, incoming, encoder, wishes } = context;
  if (plan.passthrough) return (callId) => passthroughWriter(wishes, callId);
  return () => encodedWriter(incoming.codec, request, encoder);
}

/** @throws TitoError `unsupported`: only an engine's own reply shows what a harness wants to see of the evidence. */
function refuseEvidence(wishes: ChatWishes): void {
  if (!wantsEvidence(wishes)) return;
  const name = wishes.logprobs ? "logprobs" : "return_token_ids";
  throw new TitoError("unsupported", `${name}: it is recorded, and not returned where the sidecar writes the answer`, {
    hint: "leave it out, or use --renderer engine",
  });
}
