/** What the stops behind the dialect know of a call. */
import type { NeutralRequest, StreamEncoder } from "../dialect/neutral.js";
import type { IncomingCall } from "../gate/incoming-call.js";
import type { Engine } from "../prompt/engine.js";
import type { Trajectory } from "../trajectory/trajectory.js";
import type { ChatWishes } from "./relay.js";
import type { Client } from "./release.js";

/** A parsed request, and everything that stays the same over its attempts. */
export interface CallContext {
  incoming: IncomingCall;
  request: NeutralRequest;
  wishes: ChatWishes;
  /** Of a streamed response; lives as long as the response. */
  encoder: StreamEncoder;
  /** Under which a retry finds this call. */
  key: string;
  /** The call that this one seems to repeat. */
  retryOf: string | null;
  /** Last commit when the request arrived. */
  arrivedAfter: number;
  trajectory: Trajectory;
  engine: Engine;
  client: Client;
}
