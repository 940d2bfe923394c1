/**
 * Text completions are not offered: a prompt without messages belongs to no conversation, and what a harness makes of a template by itself can neither be
 * explained nor continued. The refusal is deliberate, in the dialect's own error, and on record, so that nobody wonders where the call is.
 */
import { TitoError } from "@tito/format";
import type { IncomingCall } from "../gate/incoming-call.js";
import { checkOpen, type Trajectory } from "../trajectory/trajectory.js";
import { recordIntent, recordUncaptured } from "./record.js";

/** Records the refused call. Returns the error that the harness gets. @throws TitoError when the trajectory takes no calls any more. */
export function refuseCompletion(trajectory: Trajectory, incoming: Omit<IncomingCall, "codec" | "dialect">): TitoError {
  checkOpen(trajectory);
  const refusal = new TitoError(
    "unsupported",
    "text completions are not offered here: the prompt must come as messages",
    {
      hint: "set the harness to /v1/chat/completions, /v1/responses or /v1/messages",
    },
  );
  const callId = trajectory.newCallId();
  recordIntent(trajectory, callId, { ...incoming, dialect: "completions" });
  const { status, message } = refusal;
  recordUncaptured(trajectory, { callId, reason: "refused_unsupported", status, detail: message, lostTokens: false });
  return refusal;
}
