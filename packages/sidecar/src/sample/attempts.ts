/** When the engine is asked again for the same call: transient failures before anything reached the harness, within bounds. */
import { setTimeout as wait } from "node:timers/promises";
import type { DialectError } from "../dialect/neutral.js";

/** Delay before attempt n + 1. The harness waits meanwhile (its own retries would start after as long). */
const DELAYS_MS = [200, 500, 1000, 2000];
const RETRY_AFTER_S_MAX = 10;
/** An engine that fails with 500 may do so for this very request: asked once more only. */
const INTERNAL_ATTEMPTS_MAX = 2;

/** Milliseconds to wait before asking again, or null: pass the failure on. `attempt` counts from 1. */
export function retryDelay(error: DialectError, attempt: number): number | null {
  if (!error.retryable) return null;
  const delay = DELAYS_MS[attempt - 1];
  if (delay === undefined) return null;
  if (error.kind === "internal" && attempt >= INTERNAL_ATTEMPTS_MAX) return null;
  if (error.retryAfterS === undefined) return delay;
  return error.retryAfterS <= RETRY_AFTER_S_MAX ? error.retryAfterS * 1000 : null;
}

/** Waits before the next attempt. */
export async function pause(delayMs: number): Promise<void> {
  await wait(delayMs);
}
