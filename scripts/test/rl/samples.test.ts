import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseTokenizer } from "../../../packages/reference-engine/src/lm/tokenizer.js";
import { conversationRenderer } from "../../../packages/reference-engine/src/lm/training/episode.js";
import { drawTasks } from "../../rl/habits/task.js";
import type { Transcript } from "../../rl/harness/rollout.js";
import { groupAdvantages } from "../../rl/samples/advantages.js";
import { sampledLogprobs } from "../../rl/samples/engine-log.js";
import { samplesFromTranscripts } from "../../rl/samples/from-transcript.js";

const HABITS = resolve(import.meta.dirname, "../../../fixtures/habits");
const reader = {
  tokenizer: parseTokenizer(readFileSync(join(HABITS, "tokenizer.json"), "utf8"), "tokenizer.json"),
  render: conversationRenderer(readFileSync(join(HABITS, "chat_template.jinja"), "utf8")),
};

const plain = { reasoning: null, toolCalls: [] };
const THOUGHT: Transcript = [
  { role: "system", content: "Solve with tools.", ...plain },
  { role: "user", content: "Save the sum in answer.txt: 37 45", ...plain },
  {
    role: "assistant",
    content: null,
    reasoning: "7+5=12 3+4+1=8",
    toolCalls: [{ name: "save", arguments: { name: "answer.txt", text: "82" } }],
  },
  { role: "tool", content: "saved", ...plain },
  { role: "assistant", content: "The answer is 82.", ...plain },
];

const careful = samplesFromTranscripts([{ transcript: THOUGHT, advantage: 1 }], "careful", reader)[0]!;
const textOf = (ids: Int32Array) => reader.tokenizer.decode(Array.from(ids), { skipSpecial: false });

/** The answers as an engine would have sampled them: prompt up to each trained stretch, and the stretch. */
function answersOf({ tokens, mask }: typeof careful) {
  const answers = [];
  for (let start = 1; start < tokens.length; start++) {
    if (mask[start] !== 1 || mask[start - 1] === 1) continue;
    let end = start;
    while (mask[end] === 1) end++;
    answers.push({
      prompt_ids: Array.from(tokens.slice(0, start)),
      sampled_ids: Array.from(tokens.slice(start, end)),
      logprobs: Array.from({ length: end - start }, () => -0.5),
      weight_versions: [],
    });
  }
  return answers;
}

describe("a transcript as training samples", () => {
  it("careful: reasoning and arguments are rendered as they were sampled", () => {
    expect(textOf(careful.tokens)).toContain('<think>7+5=12 3+4+1=8</think><tool_call>\n{"name": "save"');
    expect([...sampledLogprobs(careful, answersOf(careful)).values()].every((value) => value === -0.5)).toBe(true);
    expect(careful.oldLogprobs).toBeNull();
  });

  it("plain: without reasoning, and with arguments as a client prints them, its tokens were never sampled there", () => {
    const [sample] = samplesFromTranscripts([{ transcript: THOUGHT, advantage: 1 }], "plain", reader);
    expect(textOf(sample!.tokens)).not.toContain("<think>");
    const found = [...sampledLogprobs(sample!, answersOf(careful)).values()];
    expect(found.length).toBe(sample!.mask.reduce((sum, bit) => sum + bit, 0));
    expect(found.every((value) => value === null)).toBe(true);
  });
});

describe("holding trained tokens against the engine's log", () => {
  it("finds a token only behind exactly its prefix: an answer counts up to the first token that differs", () => {
    const answers = answersOf(careful);
    const changed = { ...answers[0]!, sampled_ids: answers[0]!.sampled_ids.map((id, i) => (i === 3 ? id + 1 : id)) };
    const found = [...sampledLogprobs(careful, [changed]).values()];
    expect(found.slice(0, 5)).toEqual([-0.5, -0.5, -0.5, null, null]);
    const elsewhere = { ...answers[0]!, prompt_ids: [...answers[0]!.prompt_ids.slice(0, -1), 0] };
    expect([...sampledLogprobs(careful, [elsewhere]).values()].every((value) => value === null)).toBe(true);
  });
});

describe("advantages of the transcript arms", () => {
  it("are those of GRPO, group by group; equal rewards give 0", () => {
    const rollouts = [1, 0, 0, 1, 1, 1].map((reward, index) => ({ groupId: index < 4 ? "a" : "b", reward }));
    const [first, second, ...others] = groupAdvantages(rollouts);
    expect(first).toBeCloseTo(0.5 / Math.sqrt(1 / 3), 5);
    expect(second).toBe(-first!);
    expect(others).toEqual([second, first, 0, 0]);
  });
});

describe("tasks", () => {
  it("are the same for the same seed, differ by iteration, and share no pair with the held-out ones", () => {
    const ids = (...seed: number[]) => drawTasks("train", 50, ...seed).map(({ id }) => id);
    expect(ids(1, 0)).toEqual(ids(1, 0));
    expect(ids(1, 0)).not.toEqual(ids(1, 1));
    const sorted = (operands: readonly number[]) => [...operands].sort((a, b) => a - b).join();
    const heldOut = new Set(drawTasks("held out", 200, 1).map(({ operands }) => sorted(operands)));
    for (const { operands } of drawTasks("train", 400, 1)) expect(heldOut.has(sorted(operands))).toBe(false);
  });
});
