import type { FaultBoard } from "./board.js";
import type { Fault } from "./schema.js";

/** A fault struck between two tokens; the server ends the reply as the fault says. */
export class Interrupted extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(`fault: ${fault.kind}`);
    this.name = "Interrupted";
    this.fault = fault;
  }
}

/** What the sampling loop asks before each token and at the end. */
export interface FaultHooks {
  /** Extra wait before each token. */
  delayMs: number;
  /** How an answer without a token ends; null for one that has tokens. */
  emptyFinish: "stop" | "length" | null;
  /** True: end now with finish reason `abort`. May hold. Throws `Interrupted`. */
  beforeToken(count: number, signal: AbortSignal): Promise<boolean>;
  /** The answer is complete. A fault that was to strike after more tokens than there are strikes here. */
  atEnd(signal: AbortSignal): Promise<boolean>;
}

/** The hooks of one request; `fault` null gives hooks that do nothing. */
export function createHooks(fault: Fault | null, board: FaultBoard): FaultHooks {
  let struck = false;
  const strike = async (signal: AbortSignal): Promise<boolean> => {
    struck = true;
    switch (fault?.kind) {
      case "abort":
        return true;
      case "hang_after":
        await board.hold(signal);
        return false;
      case "cut_stream":
      case "error_event":
      case "bad_json":
        throw new Interrupted(fault);
      default:
        return false;
    }
  };
  const after = tokensBefore(fault);
  return {
    delayMs: fault?.kind === "slow_tokens" ? fault.delayMs : 0,
    emptyFinish: fault?.kind === "no_tokens" ? fault.finish : null,
    beforeToken: async (count, signal) => !struck && count >= after && strike(signal),
    atEnd: async (signal) => !struck && after !== Number.POSITIVE_INFINITY && strike(signal),
  };
}

function tokensBefore(fault: Fault | null): number {
  switch (fault?.kind) {
    case "abort":
    case "cut_stream":
    case "error_event":
    case "bad_json":
      return fault.afterTokens;
    case "hang_after":
      return fault.tokens;
    default:
      return Number.POSITIVE_INFINITY;
  }
}
