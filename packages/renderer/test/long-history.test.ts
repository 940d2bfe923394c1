/** A long history costs what is new in it: work is counted, not timed. */
import { Interpreter } from "@huggingface/jinja";
import type { Message } from "@tito/format";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FAMILIES } from "../src/families/families.js";
import type { PromptRenderer } from "../src/prompt-renderer.js";
import { GrowingIds } from "../src/tokenizer/growing-ids.js";
import { Tokenizer } from "../src/tokenizer/tokenizer.js";
import { ValueGuard } from "../src/tokenizer/value-guard.js";
import { openByteRenderer } from "./byte-bundles.js";

const RESULT = "  the file and the line\n".repeat(80);

/** Turns of a tool loop, each with about 2 kB of text that no other turn has. */
function history(turns: number): Message[] {
  const messages: Message[] = [
    { role: "system", content: "You repair programs." },
    { role: "user", content: "Fix the failing test." },
  ];
  for (let turn = 0; turn < turns; turn++) {
    const call = { id: `call_${turn}`, name: "bash", arguments: `{"command": "sed -n ${turn}p a.py"}` };
    messages.push({ role: "assistant", content: null, reasoning: `Step ${turn}.`, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: call.id, content: `${turn}: ${RESULT}` });
  }
  return messages;
}

interface Work {
  /** Template expressions that were evaluated. */
  evaluated: number;
  /** Characters of values that were guarded. */
  guarded: number;
  /** Characters of text that were encoded. */
  encoded: number;
}

/** What the prompt of turn `turn` costs when that of the turn before was made. */
function workOfTurn(renderer: PromptRenderer, turn: number): Work {
  // As the harness sends it: the whole history, read anew from a request.
  const prompt = (turns: number) => renderer.render(structuredClone(history(turns)), []);
  prompt(turn - 1);
  const work: Work = { evaluated: 0, guarded: 0, encoded: 0 };
  const evaluate = Interpreter.prototype.evaluate;
  vi.spyOn(Interpreter.prototype, "evaluate").mockImplementation(function (this: Interpreter, ...args) {
    work.evaluated++;
    return evaluate.apply(this, args);
  });
  const protect = ValueGuard.prototype.protect;
  vi.spyOn(ValueGuard.prototype, "protect").mockImplementation(function (this: ValueGuard, value) {
    work.guarded += value.length;
    return protect.call(this, value);
  });
  const encodePlain = Tokenizer.prototype.encodePlain;
  vi.spyOn(Tokenizer.prototype, "encodePlain").mockImplementation(function (this: Tokenizer, text) {
    work.encoded += text.length;
    return encodePlain.call(this, text);
  });
  prompt(turn);
  vi.restoreAllMocks();
  return work;
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("C1.5 work in the new tokens only", () => {
  // The golden template of glm-5.3 looks at the whole rest of the conversation from every result on.
  const byTemplate = Object.keys(FAMILIES).filter(
    (family) => FAMILIES[family]!.writer.kind === "template" && family !== "glm-5.3",
  );

  it.each(byTemplate)("%s: turn 128 costs what turn 8 costs", async (family) => {
    const renderer = await openByteRenderer(family);
    const early = workOfTurn(renderer, 8);
    const late = workOfTurn(renderer, 128);
    expect(early.encoded).toBeGreaterThan(RESULT.length);
    // The numbers of late turns have more digits.
    for (const name of ["evaluated", "guarded", "encoded"] as const) {
      expect(late[name], name).toBeLessThanOrEqual(1.02 * early[name] + 16);
    }
  });

  it("the ids of the history are not copied: a prompt goes on in the memory of the one before", async () => {
    const renderer = await openByteRenderer("qwen3");
    const before = renderer.render(history(20), []).ids;
    const kept = Int32Array.from(before);
    const after = renderer.render(history(21), []).ids;
    expect(after.buffer).toBe(before.buffer);
    const fresh = (await openByteRenderer("qwen3")).render(history(21), []).ids;
    expect(after).toEqual(fresh);
    expect(before).toEqual(kept);
  });
});

describe("ids that grow", () => {
  it("ids that were given out do not change when two prompts go on differently", () => {
    const first = new GrowingIds().continueWith(0, [Int32Array.of(1, 2, 3, 4)]);
    const same = first.block.continueWith(2, [Int32Array.of(3), Int32Array.of(4, 5)]);
    const other = first.block.continueWith(2, [Int32Array.of(3, 9)]);
    const shorter = first.block.continueWith(3, []);
    expect([first, same, other, shorter].map(({ ids }) => [...ids])).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4, 5],
      [1, 2, 3, 9],
      [1, 2, 3],
    ]);
    expect(same.block).toBe(first.block);
    expect(other.block).not.toBe(first.block);
  });
});
