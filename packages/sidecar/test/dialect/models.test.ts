import { describe, expect, it } from "vitest";
import { modelReply, modelsReply } from "../../src/dialect/models.js";

const createdAt = (created: string): unknown => {
  const entry = `{"id":"policy","created":${created}}`;
  const reply = modelReply({ id: "policy", entry }, "policy", true);
  const { data } = JSON.parse(modelsReply({ id: "policy", entry }, true)) as { data: unknown[] };
  expect(JSON.parse(reply!)).toEqual(data[0]);
  return (data[0] as { created_at: string }).created_at;
};

describe("when a model was made, in Anthropic's words (O.114)", () => {
  it.each([
    "1790000000",
    "1790000000000",
    "1790000000000000",
    "1790000000000000000",
    "1790000000.9",
    '"1790000000"',
    '" 1790000000000 "',
    '"2026-09-21T14:13:20Z"',
    '"2026-09-21T16:13:20.5+02:00"',
  ])("%s is read in its own unit", (created) => {
    expect(createdAt(created)).toBe("2026-09-21T14:13:20Z");
  });

  it.each([
    "null",
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e400",
    '""',
    '"soon"',
    "{}",
    "[]",
    "true",
    '{"toString":1,"valueOf":2}',
    '"1e309"',
  ])("%s tells nothing", (created) => {
    expect(createdAt(created)).toBe("1970-01-01T00:00:00Z");
  });

  it("is never later than the last date that can be written", () => {
    for (let digits = 1; digits < 40; digits += 1)
      expect(createdAt("9".repeat(digits))).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });
});
