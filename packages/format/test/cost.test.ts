import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { rebuildLines } from "../src/read/lines.js";
import { readTrajectory } from "../src/read/read-trajectory.js";
import type { Message } from "../src/record/messages.js";
import { encodeRecord } from "../src/record/record-codec.js";
import { concat, ids, intent, openWriter, tempDir, turn } from "./support/turns.js";

function bytesOf(dir: string): number {
  const entries = fs.readdirSync(dir, { withFileTypes: true });
  return entries.reduce((sum, entry) => {
    const full = path.join(dir, entry.name);
    return sum + (entry.isDirectory() ? bytesOf(full) : fs.statSync(full).size);
  }, 0);
}

/** Text of about this many bytes that does not deflate to nothing: numbers from a fixed series. */
function text(seed: number, bytes: number): string {
  let state = seed + 1;
  let out = "";
  while (out.length < bytes) {
    state = (state * 48271) % 2147483647;
    out += `${state.toString(36)} `;
  }
  return out.slice(0, bytes);
}

describe("what a trajectory costs on disk", () => {
  it("at most 8 bytes a sampled token, 12 with float64 log probabilities, 4 a new context token, plus 10 %", () => {
    const empty = encodeRecord("turn", turn("a", ids(1, 1), ids(1, 1))).length;
    const narrow = encodeRecord("turn", turn("a", ids(1, 8001), ids(1, 501))).length;
    expect(narrow - empty).toBeLessThanOrEqual((500 * 8 + 8000 * 4) * 1.1);
    const wide = Float64Array.from({ length: 501 }, (_, i) => -0.1234567880654335 - i);
    const double = encodeRecord("turn", turn("a", ids(1, 8001), ids(1, 501), 0, { logprobs: wide })).length;
    expect(double - empty).toBeLessThanOrEqual((500 * 12 + 8000 * 4) * 1.1);
    // G15: ids and log probabilities raw are 36 kB for such a call
    expect(narrow).toBeLessThanOrEqual((8001 * 4 + 501 * 8) * 1.05);
  });

  it("under 4 MB for 200 turns and 131k tokens when every turn drifts inside the last response", async () => {
    const out = tempDir();
    const writer = await openWriter(out, { durability: "write" });
    const turns = 200;
    const sampledCount = 255;
    const addedCount = 400;
    const messages: Message[] = [];
    let line: Int32Array = new Int32Array(0);
    let lastPrompt = 0;
    for (let i = 0; i < turns; i++) {
      // the harness changed the last response in its middle: a new segment that shares everything before
      const shared = i === 0 ? 0 : lastPrompt + Math.floor(sampledCount / 2);
      const drifted = concat(
        line.slice(0, shared),
        ids(100_000 + i * 1000, sampledCount - Math.floor(sampledCount / 2) + addedCount),
      );
      const sampled = ids(50_000 + i * 300, sampledCount);
      const reply: Message = { role: "assistant", content: text(i, 1000) };
      const added: Message[] = [{ role: "tool", tool_call_id: `c${i}`, content: text(i + 5000, 1600) }];
      const kept = Math.max(0, messages.length - 1);
      const fresh =
        i === 0 ? added : [{ ...messages.at(-1)!, content: `${String(messages.at(-1)!.content)}!` }, ...added];
      messages.splice(kept, messages.length, ...fresh, reply);
      const logprobs = Float64Array.from(sampled, (id) => -0.1234567880654335 - id);
      const record = turn(`t${i}`, drifted, sampled, shared, {
        logprobs,
        messages_keep: kept,
        messages_new: fresh,
        message: reply,
        tools: i === 0 ? [] : null,
      });
      record.decision.kind = "new_segment";
      writer.writeIntent(
        intent(`t${i}`, JSON.stringify({ model: "m", messages: messages.slice(0, -1), stream: true })),
      );
      await writer.commitTurn({ open: { parent: i === 0 ? null : { segment: i, tokens: shared } }, turn: record });
      writer.writeDelivery({
        call_id: `t${i}`,
        outcome: "delivered",
        bytes: 1000,
        status: 200,
        detail: null,
        at_ms: 1,
      });
      line = concat(drifted, sampled);
      lastPrompt = drifted.length;
    }
    await writer.seal({ reason: "test" });
    const dir = path.join(out, "t1");
    expect(line.length).toBeGreaterThan(104_000);
    const log = readTrajectory(dir, { mode: "strict" });
    const lines = rebuildLines(log);
    expect(lines.line(turns)).toEqual(line);
    for (const item of lines.turns) expect(lines.statusOf(item)).toBe("exact");
    expect(lines.messages(lines.turns.at(-1)!)).toEqual(messages.slice(0, -1));
    expect(
      lines.turns.reduce((sum, item) => sum + item.record.sampled_ids.length + item.record.prompt_suffix.length, 0),
    ).toBeGreaterThan(131_000);
    const bytes = bytesOf(dir);
    console.log(`200 drifting turns, ${line.length} tokens on the last line: ${bytes} bytes`);
    expect(bytes).toBeLessThan(4_000_000);
  });

  it("a long line is rebuilt without holding its square: 2,000 turns of one segment", async () => {
    const out = tempDir();
    const writer = await openWriter(out, { durability: "write" });
    let line: Int32Array = new Int32Array(0);
    for (let i = 0; i < 2000; i++) {
      const prompt = concat(line, ids(i, 40));
      await writer.commitTurn(
        i === 0
          ? { open: { parent: null }, turn: turn("t0", prompt, ids(i, 20)) }
          : { segment: 1, turn: turn(`t${i}`, prompt, ids(i, 20), line.length) },
      );
      line = concat(prompt, ids(i, 20));
    }
    await writer.seal({ reason: "test" });
    globalThis.gc?.();
    const before = process.memoryUsage().arrayBuffers;
    const lines = rebuildLines(readTrajectory(path.join(out, "t1"), { mode: "strict" }));
    // 2,000 prompts written out would be 480 MB
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
    expect(lines.line(1)).toEqual(line);
    expect(lines.promptIds(lines.turns[1234]!)).toEqual(line.slice(0, 1234 * 60 + 40));
  });
});
