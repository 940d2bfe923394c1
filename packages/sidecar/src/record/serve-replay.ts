/**
 * A retry of a call whose answer was finished and never delivered, or whose engine still works for nobody: it gets that answer,
 * in the shape it asks for. No second sample is drawn and no turn is made, only a new delivery of the same one.
 */
import { codecFor } from "../dialect/dialects.js";
import type { FinishedAnswer } from "../trajectory/replay.js";
import { checkNotSealed } from "../trajectory/trajectory.js";
import type { CallContext } from "./call-context.js";
import { recordDelivery, recordReplay } from "./record.js";
import { encodedWriter, wantsEvidence } from "./relay.js";
import { JSON_BODY } from "./release.js";

/** Resolves with false when there is nothing to replay: the call is then served as any other. */
export function serveReplay(context: CallContext): Promise<boolean> {
  return context.trajectory.hold(replay(context));
}

async function replay(context: CallContext): Promise<boolean> {
  if (wantsEvidence(context.wishes)) return false;
  const answer = context.trajectory.replays.takeFinished(context.key) ?? (await adoptOrphan(context));
  if (answer === null) return context.client.gone;
  checkNotSealed(context.trajectory);
  const { request, client, trajectory, key, incoming } = context;
  const replayId = trajectory.newCallId();
  recordReplay(trajectory, { callId: answer.callId, replayId, matchedBy: key.slice(0, key.indexOf(":")) });
  const delivery = await client.finish(...shape(context, answer));
  trajectory.noteDelivery(answer.callId, delivery.outcome);
  if (trajectory.phase !== "sealed") recordDelivery(trajectory, answer.callId, delivery);
  trajectory.log("info", "replayed", { call: answer.callId, path: incoming.path, streamed: request.stream });
  if (delivery.outcome === "failed") trajectory.replays.keep(key, answer);
  return true;
}

function shape(
  context: CallContext,
  answer: FinishedAnswer,
): [string, { status: number; headers: Record<string, string> }?] {
  const { request, incoming, client } = context;
  const codec = codecFor(incoming.codec, answer.reasoningKey);
  if (!request.stream) return [codec.reply(request, answer.events), { status: 200, headers: JSON_BODY }];
  client.beginStream();
  const encoder = incoming.dialect === "chat" ? codec.stream(request) : context.encoder;
  const frames = encodedWriter(codec, request, encoder).end(answer.events);
  return [frames.map((frame) => frame.text).join("")];
}

/** Waits for a running call that lost its harness. When this harness goes too, the call is given up to the next one. */
async function adoptOrphan(context: CallContext): Promise<FinishedAnswer | null> {
  const { trajectory, key, client } = context;
  const orphan = trajectory.replays.takeOrphan(key);
  if (orphan === null) return null;
  const giveUp = orphan.adopt();
  trajectory.log("info", "adopted", { call: orphan.callId });
  let phase: "waiting" | "answered" | "given_up" = "waiting";
  client.onGone(() => {
    if (phase !== "waiting") return;
    phase = "given_up";
    giveUp();
    trajectory.replays.addOrphan(key, orphan);
  });
  const answer = await orphan.answer;
  if ((phase as string) === "given_up") return null;
  phase = "answered";
  return answer;
}
