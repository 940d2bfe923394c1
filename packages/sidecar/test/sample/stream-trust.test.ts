import { describe, expect, it } from "vitest";
import { StreamTrust } from "../../src/sample/stream-trust.js";

const LOST = ["completion_count_disagrees"];
const WHOLE: string[] = [];

describe("an engine whose streams lose ids (O.105)", () => {
  it("is asked for whole bodies after the second damaged stream, also with whole ones between them", () => {
    const trust = new StreamTrust(null);
    expect(trust.note(true, LOST)).toBe(false);
    for (let i = 0; i < 14; i++) trust.note(true, WHOLE);
    expect(trust.reason).toBeNull();
    expect(trust.note(true, LOST)).toBe(true);
    expect(trust.reason).toBe("repeated_damage");
  });

  it("stays a streaming one where damage is rare, and where nothing was lost", () => {
    const trust = new StreamTrust(null);
    for (let i = 0; i < 200; i++) trust.note(true, i % 20 === 0 ? LOST : ["usage_missing", "logprob_not_finite"]);
    expect(trust.reason).toBeNull();
  });

  it("streams again, for good, where whole bodies lose as much", () => {
    const trust = new StreamTrust(null);
    for (const streamed of [true, true, false, false]) trust.note(streamed, LOST);
    expect(trust.reason).toBeNull();
    for (let i = 0; i < 8; i++) expect(trust.note(true, LOST)).toBe(false);
    expect(trust.reason).toBeNull();
  });

  it("counts no late stream against whole bodies", () => {
    const trust = new StreamTrust(null);
    for (let i = 0; i < 6; i++) trust.note(true, LOST);
    expect(trust.reason).toBe("repeated_damage");
  });

  it.each(["never_streams", "probe_lost_ids"] as const)("keeps what the start found (%s)", (found) => {
    const trust = new StreamTrust(found);
    for (let i = 0; i < 8; i++) trust.note(i % 2 === 0, LOST);
    expect(trust.reason).toBe(found);
  });
});
