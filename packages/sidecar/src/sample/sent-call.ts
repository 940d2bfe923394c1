/** A call as it goes out to the engine, and how its reply is read. An engine's adapter makes both. */
import type { EngineChunk } from "./engine-chunk.js";

/** Reads the pieces of one reply, in order, as what is new in each: some engines repeat in every piece what came before. */
export type ChunkReader = (json: unknown) => EngineChunk;

/** One call in an engine's own words. */
export interface SentCall {
  path: string;
  body: string;
  /** A fresh reader for each time the call is sent. */
  reader(): ChunkReader;
}
