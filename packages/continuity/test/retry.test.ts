import { describe, expect, it } from "vitest";
import { type EarlierCall, type RetryFacts, retryOf } from "../src/index.js";

const facts = (more: Partial<RetryFacts> = {}): RetryFacts => ({
  retry_count: 0,
  idempotency_key: null,
  body_key: "b",
  ...more,
});
const earlier = (call_id: string, more: Partial<EarlierCall> = {}): EarlierCall => ({
  ...facts(),
  call_id,
  delivery: "delivered",
  ...more,
});

describe("retry evidence", () => {
  it("is a retry header with the same body, also when the first answer was delivered", () => {
    const calls = [earlier("a"), earlier("b", { body_key: "other" }), earlier("c")];
    expect(retryOf(facts({ retry_count: 1 }), calls)).toEqual({ call_id: "c", by: "retry_header" });
    expect(retryOf(facts({ retry_count: 1, body_key: "new" }), calls)).toBeNull();
  });

  it("is an idempotency key with the same body; a constant key on other bodies is none", () => {
    const calls = [earlier("a", { idempotency_key: "k" }), earlier("b")];
    expect(retryOf(facts({ idempotency_key: "k" }), calls)).toEqual({ call_id: "a", by: "idempotency_key" });
    expect(retryOf(facts({ idempotency_key: "k", body_key: "new" }), calls)).toBeNull();
  });

  it("is an identical body whose last answer never arrived", () => {
    expect(retryOf(facts(), [earlier("a", { delivery: "failed" })])).toEqual({
      call_id: "a",
      by: "undelivered_answer",
    });
    expect(retryOf(facts(), [earlier("a", { delivery: "unknown" })])).toEqual({
      call_id: "a",
      by: "undelivered_answer",
    });
  });

  it("is not an identical body alone: harnesses ask the same twice, also at the same time", () => {
    expect(retryOf(facts(), [earlier("a")])).toBeNull();
    expect(retryOf(facts(), [earlier("a", { delivery: "in_flight" })])).toBeNull();
    expect(retryOf(facts(), [earlier("a", { delivery: "failed" }), earlier("b")])).toBeNull();
    expect(retryOf(facts(), [])).toBeNull();
    expect(retryOf(facts({ retry_count: null }), [earlier("a")])).toBeNull();
  });
});
