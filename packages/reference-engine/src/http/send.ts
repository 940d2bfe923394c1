import { ApiError, toApiError } from "../errors.js";
import { Interrupted } from "../faults/hooks.js";
import type { Choice } from "./call.js";
import type { Run } from "./run.js";
import { stringify } from "./token-view.js";

/** Samples all choices, then sends one JSON reply. */
export async function sendWhole(run: Run): Promise<void> {
  const { reply, format } = run;
  try {
    await Promise.all(run.choices.map((choice) => takeAll(run, choice)));
  } catch (error) {
    breakWhole(run, error);
    return;
  }
  if (!reply.gone.aborted) reply.text(200, "application/json", stringify(format.whole(run.usage())));
}

async function takeAll(run: Run, choice: Choice): Promise<void> {
  for await (const step of run.steps(choice)) run.format.step(choice, step);
}

function breakWhole({ reply, format, usage }: Run, error: unknown): void {
  if (!(error instanceof Interrupted)) throw error;
  switch (error.fault.kind) {
    case "cut_stream":
      reply.cut(error.fault.how);
      return;
    case "bad_json": {
      const text = stringify(format.whole(usage()));
      reply.text(200, "application/json", text.slice(0, text.length >> 1));
      return;
    }
    case "error_event":
      throw new ApiError(500, "InternalServerError", error.fault.message);
    default:
      throw error;
  }
}

/** Sends chunks as they come; choices take turns. */
export async function sendStream(run: Run): Promise<void> {
  const { reply, format, call } = run;
  reply.startEvents();
  try {
    await Promise.all(run.choices.map((choice) => streamChoice(run, choice)));
    if (call.stream?.includeUsage === true && !losesUsage(run))
      await reply.event(stringify(format.usage(streamedUsage(run))));
  } catch (error) {
    if (await breakStream(run, error)) return;
  }
  await reply.event("[DONE]");
  reply.endEvents();
}

async function streamChoice(run: Run, choice: Choice): Promise<void> {
  const { reply, format, call, fault } = run;
  const continuous = call.stream?.continuousUsage === true;
  const usage = () => (continuous && !losesUsage(run) ? { usage: streamedUsage(run) } : {});
  for (const chunk of format.head(choice)) await reply.event(stringify({ ...chunk, ...usage() }));
  for await (const step of run.steps(choice)) {
    const chunks = format.step(choice, step);
    if (fault?.kind === "lost_chunk" && step.draws.length > 0 && choice.record.ids.length - 1 === fault.token) continue;
    for (const chunk of chunks) await reply.event(stringify({ ...chunk, ...usage() }));
  }
}

/** From the chunk on that is lost. */
function losesUsage({ fault, choices }: Run): boolean {
  return fault?.kind === "lost_chunk" && !fault.usage && choices.some(({ record }) => record.ids.length > fault.token);
}

/** Streams leave out what is not set. */
function streamedUsage(run: Run): object {
  const { prompt_tokens_details, ...usage } = run.usage();
  return prompt_tokens_details === null ? usage : { ...usage, prompt_tokens_details };
}

/** Ends a stream that failed. True: nothing more may be sent. An error event is followed by `[DONE]`, as in vLLM. */
async function breakStream({ reply }: Run, error: unknown): Promise<boolean> {
  const fault = error instanceof Interrupted ? error.fault : null;
  if (fault?.kind === "cut_stream") {
    reply.cut(fault.how);
    return true;
  }
  if (fault?.kind === "bad_json") {
    await reply.event('{"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"');
    return false;
  }
  const apiError =
    fault?.kind === "error_event" ? new ApiError(500, "InternalServerError", fault.message) : toApiError(error);
  await reply.event(stringify(apiError.body()));
  return false;
}
