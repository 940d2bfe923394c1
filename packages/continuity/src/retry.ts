/** Retry evidence: when is a request the same question asked again, and not a new turn that happens to look alike? */
import type { DeliveryState } from "./types.js";

export interface RetryFacts {
  /** Value of `x-stainless-retry-count`, null when the header is absent or not a number. */
  retry_count: number | null;
  /** Value of `idempotency-key`, null when absent. */
  idempotency_key: string | null;
  /** Equal for requests whose bodies are equal apart from the fields that a harness changes between attempts. */
  body_key: string;
}

export interface EarlierCall extends RetryFacts {
  call_id: string;
  /** `in_flight`: a live client still waits for the answer, so another request cannot be its retry. */
  delivery: DeliveryState | "in_flight";
}

export type RetryEvidence = { call_id: string; by: "retry_header" | "idempotency_key" | "undelivered_answer" };

/**
 * The call that a request repeats: the latest one with the same body for which a header says so, or whose answer never arrived.
 * Null when there is no evidence: an identical request is then a turn of its own (harnesses do ask the same twice).
 * `earlier` is in the order in which the calls arrived.
 */
export function retryOf(request: RetryFacts, earlier: readonly EarlierCall[]): RetryEvidence | null {
  const same = earlier.filter((call) => call.body_key === request.body_key);
  const last = same[same.length - 1];
  if (last === undefined) return null;
  const sameKey = same.findLast(
    (call) => request.idempotency_key !== null && call.idempotency_key === request.idempotency_key,
  );
  if (sameKey !== undefined) return { call_id: sameKey.call_id, by: "idempotency_key" };
  if (request.retry_count !== null && request.retry_count > 0) return { call_id: last.call_id, by: "retry_header" };
  const lost = last.delivery === "failed" || last.delivery === "unknown";
  return lost ? { call_id: last.call_id, by: "undelivered_answer" } : null;
}
