import { describe, expect, it } from "vitest";
import { cutObject } from "../../src/json/slices.js";
import { replayKey } from "../../src/trajectory/replay.js";

const key = (body: object, headers: Record<string, string> = {}, dialect: "chat" | "messages" = "chat"): string =>
  replayKey(
    dialect,
    cutObject(JSON.stringify(body)),
    new Map(Object.entries(headers).map(([name, value]) => [name, [value]])),
  );

describe("the key under which a retry finds its first attempt", () => {
  const BODY = { messages: [{ role: "user", content: "one" }], max_tokens: 9 };
  const OTHER = { ...BODY, messages: [{ role: "user", content: "two" }] };
  const ONCE = { "idempotency-key": "k" };

  it("is another for another body under one Idempotency-Key, and the same for the same body in another shape (O.117)", () => {
    expect(key(OTHER, ONCE)).not.toBe(key(BODY, ONCE));
    expect(key({ ...BODY, max_tokens: 10 }, ONCE)).not.toBe(key(BODY, ONCE));
    expect(key({ stream: true, ...BODY, metadata: { a: 1 } }, ONCE)).toBe(key(BODY, ONCE));
    expect(key(BODY, { ...ONCE, "x-session-id": "s" })).toBe(key(BODY, ONCE));
  });

  it("is another for another Idempotency-Key, dialect or, without one, session", () => {
    const keys = [
      key(BODY),
      key(BODY, ONCE),
      key(BODY, { "idempotency-key": "l" }),
      key(BODY, ONCE, "messages"),
      key(BODY, {}, "messages"),
      key(BODY, { "x-session-id": "s" }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});
