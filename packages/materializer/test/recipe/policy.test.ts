import { describe, expect, it } from "vitest";
import { loadPolicy, policyDigest, printPolicy } from "../../src/recipe/policy.js";

describe("the policy", () => {
  it("is read back from what is printed, with the same digest", () => {
    const policy = loadPolicy("reward: a + b\nbuild: {split: turn}", { maxSeqLen: 100 });
    expect(loadPolicy(printPolicy(policy))).toEqual(policy);
    expect(policyDigest(loadPolicy(printPolicy(policy)))).toBe(policyDigest(policy));
    expect(policyDigest(loadPolicy(null))).not.toBe(policyDigest(policy));
  });

  it("lets flags override the file, key by key", () => {
    const yaml = "build: {split: turn, max_seq_len: 5}\ncredit: {rule: rloo, weight: token}";
    const policy = loadPolicy(yaml, { split: "segment", credit: "grpo-no-std" });
    expect(policy.build).toEqual({ split: "segment", max_seq_len: 5, realign_max_lost_tokens: 0 });
    expect(policy.credit).toEqual({ rule: "grpo-no-std", group: "run.group_id", weight: "token" });
  });

  it("refuses what it does not know, with the key and in words", () => {
    expect(() => loadPolicy("select: {lane: {}}")).toThrow(/recipe: select: .*lane/);
    expect(() => loadPolicy("credit: {rule: ppo}")).toThrow(/recipe: credit.rule/);
    expect(() => loadPolicy(null, { maxSeqLen: 0 })).toThrow(/--max-seq-len: /);
    expect(() => loadPolicy("build: {max_seq_len: 0}", { credit: "rloo" }, "p.yaml")).toThrow(
      /p.yaml: build.max_seq_len/,
    );
    expect(() => loadPolicy("kredit: {}", {}, "p.yaml")).toThrow(/^p.yaml: Unrecognized key: "kredit"$/);
    expect(() => loadPolicy(null, { reward: "1 +" })).toThrow(/--reward: the expression ends too early/);
    expect(() => loadPolicy("a: {\nb", {}, "p.yaml")).toThrow(/^p.yaml: not valid YAML: [^\n]* at line 2/);
    expect(() => loadPolicy("reward: '1 +'")).toThrow(/reward: the expression ends too early/);
    expect(() => loadPolicy("exclude: {rules: [{reason: x, when: 'foo('}]}")).toThrow(/exclude.rules: x/);
    expect(() => loadPolicy("a: [")).toThrow(/not valid YAML/);
    expect(() => loadPolicy("[1]")).toThrow(/recipe/);
    expect(() => loadPolicy("pack: {max_tokens: 10}\nbuild: {max_seq_len: 11}")).toThrow(/does not fit/);
  });

  it("bounds samples by the pack length", () => {
    expect(loadPolicy(null, { packMaxTokens: 64 }).build.max_seq_len).toBe(64);
    expect(loadPolicy("build: {max_seq_len: 32}", { packMaxTokens: 64 }).build.max_seq_len).toBe(32);
  });
});
