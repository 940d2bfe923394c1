/** What the gate hands on. */
import type { Dialect } from "@tito/format";
import type { DialectCodec } from "../dialect/neutral.js";

/** A request that passed the gate. */
export interface IncomingCall {
  dialect: Dialect;
  codec: DialectCodec;
  path: string;
  headers: ReadonlyMap<string, readonly string[]>;
  body: Uint8Array;
  receivedMs: number;
}
