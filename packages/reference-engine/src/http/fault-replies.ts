import type { Engine } from "../engine.js";
import { ApiError } from "../errors.js";
import type { Fault } from "../faults/schema.js";
import type { Reply } from "./reply.js";

const HTML =
  "<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";

/** Faults that strike before the request is looked at. True: the reply is done. */
export async function strikeBeforeHeaders(engine: Engine, fault: Fault, reply: Reply): Promise<boolean> {
  switch (fault.kind) {
    case "status":
      sendStatus(reply, fault);
      return true;
    case "empty_200":
      reply.text(200, "application/json", "");
      return true;
    case "html_200":
      reply.text(200, "text/html; charset=utf-8", HTML);
      return true;
    case "hang_before_headers":
      await engine.board.hold(reply.gone);
      return reply.gone.aborted;
    default:
      return false;
  }
}

function sendStatus(reply: Reply, fault: Extract<Fault, { kind: "status" }>): void {
  const headers: Record<string, string> =
    fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
  if (typeof fault.body === "string") reply.text(fault.status, "text/plain; charset=utf-8", fault.body, headers);
  else reply.json(fault.status, fault.body ?? errorOfStatus(fault.status).body(), headers);
}

function errorOfStatus(status: number): ApiError {
  if (status === 429) return new ApiError(status, "TooManyRequestsError", "Too many requests.");
  if (status === 503) return new ApiError(status, "ServiceUnavailableError", "The engine is not ready.");
  if (status < 500) return new ApiError(status, "BadRequestError", `Refused with status ${status}.`);
  return new ApiError(status, "InternalServerError", "EngineCore encountered an issue.");
}
