import { createHash } from "node:crypto";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readTrajectory, rebuildBody } from "../../src/read/read-trajectory.js";
import { BodyStore, rebuildBodyFrom } from "../../src/record/body-delta.js";
import type { BodyDelta } from "../../src/record/records.js";
import { intent, openWriter, tempDir } from "../support/turns.js";

function storeAll(bodies: Uint8Array[]): Map<string, BodyDelta> {
  const store = new BodyStore();
  return new Map(bodies.map((body, i) => [`c${i}`, store.encode(`c${i}`, body)]));
}

/** Text that does not deflate away. */
function words(seed: number, bytes: number): string {
  let text = "";
  for (let i = 0; text.length < bytes; i++) text += createHash("sha256").update(`${seed}-${i}`).digest("base64");
  return text.slice(0, bytes);
}

describe("request bodies", () => {
  it("are rebuilt byte for byte, whatever they are", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }), (bodies) => {
        const deltas = storeAll(bodies);
        bodies.forEach((body, i) => {
          expect(Buffer.from(rebuildBodyFrom((id) => deltas.get(id), `c${i}`))).toEqual(Buffer.from(body));
        });
      }),
    );
  });

  it("cost what is new: a conversation that repeats its history at each call grows with the conversation", () => {
    const messages: string[] = [];
    const bodies = Array.from({ length: 200 }, (_, i) => {
      messages.push(JSON.stringify({ role: "user", content: words(i, 1000) }));
      return Buffer.from(`{"model":"m","messages":[${messages.join(",")}],"stream":true,"tools":[]}`);
    });
    const deltas = storeAll(bodies);
    const stored = [...deltas.values()].reduce((sum, delta) => sum + delta.deflate.length, 0);
    expect(stored).toBeLessThan(200 * 1000 * 1.05);
    expect(Buffer.from(rebuildBodyFrom((id) => deltas.get(id), "c199"))).toEqual(bodies[199]);
  });

  it("of interleaved conversations are each stored against their own", () => {
    const lanes = Array.from({ length: 6 }, (_, lane) => [words(lane, 5000)]);
    const bodies: Buffer[] = [];
    for (let step = 0; step < 10; step++) {
      for (const [lane, texts] of lanes.entries()) {
        texts.push(words(1000 + step * 10 + lane, 200));
        bodies.push(Buffer.from(JSON.stringify({ lane: texts })));
      }
    }
    const stored = [...storeAll(bodies).values()].reduce((sum, delta) => sum + delta.deflate.length, 0);
    expect(stored).toBeLessThan(6 * (5000 + 10 * 260));
  });

  it("that were changed, or whose base is gone, or that claim to unpack to more, are refused with the call's name", () => {
    const deltas = storeAll([Buffer.from("one body"), Buffer.from("one body, longer")]);
    const source = (change: Partial<BodyDelta>) => (id: string) =>
      id === "c1" ? { ...deltas.get(id)!, ...change } : deltas.get(id);
    expect(() => rebuildBodyFrom(source({ sha256: new Uint8Array(32) }), "c1")).toThrowError(
      /call c1 has another digest/,
    );
    expect(() => rebuildBodyFrom((id) => (id === "c0" ? undefined : deltas.get(id)), "c1")).toThrowError(
      /call c0, which is not there/,
    );
    expect(() => rebuildBodyFrom(source({ base_call_id: "c1" }), "c1")).toThrowError(/builds on itself/);
    expect(() => rebuildBodyFrom(source({ bytes: 2 ** 40 }), "c1")).toThrowError(/does not fit/);
    expect(() => rebuildBodyFrom(source({ prefix: 1 }), "c1")).toThrowError(/unpacks to|can not be unpacked/);
  });

  it("too large are refused before anything is written", () => {
    expect(() => new BodyStore().encode("a", { length: 65 * 1024 * 1024 } as Uint8Array)).toThrowError(
      /above 67108864 bytes/,
    );
  });

  it("of a second boot do not build on those of the first", async () => {
    const out = tempDir();
    const first = await openWriter(out);
    first.writeIntent(intent("a", "the same long body"));
    first.abandon();
    const second = await openWriter(out);
    second.writeIntent(intent("b", "the same long body"));
    await second.seal({ reason: "test" });
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(log.intents.get("b")!.body.base_call_id).toBeNull();
    expect(Buffer.from(rebuildBody(log, "b")).toString()).toBe("the same long body");
  });
});
