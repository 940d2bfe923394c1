import { describe, expect, it } from "vitest";
import { planWindow } from "../../src/harness/window.js";

const NONE = { told: null, maxContextTokens: null, maxOutputTokens: null };

describe("the window that a harness plans with (O.111)", () => {
  it.each([
    ["nobody tells one", {}, 131_072, 8192, /the engine tells no window; --max-context-tokens gives another/],
    ["the engine's", { told: 2048 }, 2048, 256, /2048 tokens of context \(the engine's window\) .* at most 256/],
    ["a long one leaves answers as they are", { told: 262_144 }, 262_144, 8192, /the engine's window/],
    ["the user's is less", { told: 9000, maxContextTokens: 9000 }, 9000, 1125, /\(--max-context-tokens\)/],
    ["the engine's is less", { told: 9000, maxContextTokens: 20_000 }, 9000, 1125, /the engine's window/],
    ["the engine tells none", { maxContextTokens: 20_000 }, 20_000, 2500, /\(--max-context-tokens\)/],
    ["the user's answer", { told: 9000, maxOutputTokens: 4000 }, 9000, 4000, /at most 4000/],
    ["hardly any", { told: 3 }, 3, 1, /at most 1/],
  ])("%s", (_name, limits, contextTokens, outputTokens, words) => {
    const plan = planWindow({ ...NONE, ...limits });
    expect(plan).toMatchObject({ contextTokens, outputTokens });
    expect(plan.words).toMatch(words);
  });
});
