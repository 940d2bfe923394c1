/** Results and rewards as other programs leave them: what can be read is, what cannot is told, and no unknown becomes a zero. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findTrials } from "../../src/find/discover.js";
import { parseJsonText } from "../../src/recipe/json-text.js";
import { temporaryDirectory } from "../temporary.js";
import { harborResult, putFile } from "../written.js";

function factsOf(files: Record<string, string>) {
  const root = temporaryDirectoryOf();
  for (const [name, text] of Object.entries(files)) {
    putFile(join(root, "trial", name), "");
    writeFileSync(join(root, "trial", name), text);
  }
  putFile(join(root, "trial", "agent", "segments", "000001.seg"), "");
  const { facts } = findTrials([root])[0]!;
  return {
    reward: facts?.scores.get("reward"),
    scores: facts?.scores.size ?? 0,
    problems: facts?.problems ?? [],
    facts,
  };
}
const roots = temporaryDirectory();
let count = 0;
const temporaryDirectoryOf = () => join(roots, String(count++));

describe("rewards", () => {
  it.each<[string, string, unknown]>([
    ["reward.json", '\uFEFF{"reward": 0.5}', 0.5],
    ["reward.json", '{"reward": 0.25, "spread": NaN, "note": "NaN"}', 0.25],
    ["reward.json", '{"reward": -Infinity}', null],
    ["reward.json", '{"reward": 1e999}', null],
    ["reward.json", '{"reward": "1"}', "1"],
    ["reward.json", '{"reward": true}', true],
    ["reward.json", '{"reward": 1, "detail": {"a": [1]}}', 1],
    ["reward.json", "123456789012345678901234567890", 1.2345678901234568e29],
    ["reward.json", "5e-324", 5e-324],
    ["reward.json", "-0.0", -0],
    ["reward.txt", "\uFEFF 0.75\r\n", 0.75],
    ["reward.txt", "+.5e-1", 0.05],
    ["verifier/reward.txt", "1", 1],
    ["verifier/reward.json", '{"reward": 0}', 0],
  ])("%s with %s", (file, text, reward) => {
    expect(factsOf({ [file]: text })).toMatchObject({ reward, problems: [] });
  });

  it.each<[string, string]>([
    ["reward.json", ""],
    ["reward.json", "[1]"],
    ["reward.json", "null"],
    ["reward.json", "{}"],
    ["reward.json", '"1"'],
    ["reward.json", '{"reward": {"value": 1}}'],
    ["reward.json", '{"reward": 1'],
    ["reward.txt", ""],
    ["reward.txt", "nan"],
    ["reward.txt", "Infinity"],
    ["reward.txt", "0x10"],
    ["reward.txt", "0,5"],
    ["reward.txt", "1/2"],
    ["reward.txt", "true"],
  ])("%s with %s holds none, and says so", (file, text) => {
    expect(factsOf({ [file]: text })).toMatchObject({ scores: 0, problems: [`${file} holds no reward`] });
  });
});

describe("a reward file beside a result.json that cannot be read (O.172)", () => {
  const named = { task_name: "add", trial_name: "add__1" };
  it.each<[string, string]>([
    ["cut", '{"task_name": "add", "trial_name": "add__1", "exception_info": {'],
    ["an exception as text", JSON.stringify({ ...named, exception_info: "RateLimitError: 429" })],
    ["a verdict as text", JSON.stringify({ ...named, reward_valid: "false" })],
    ["a policy as text", JSON.stringify({ ...named, exception_info: { exception_type: "E", policy: "invalid" } })],
    ["steps by name", JSON.stringify({ ...named, step_results: { a: {} } })],
  ])("does not count: %s", (_, text) => {
    const { facts } = factsOf({ "result.json": text, "verifier/reward.txt": "1" });
    expect(facts!.reward_not_valid).toContain("result.json");
  });

  it("counts beside a result that is no trial's", () => {
    expect(factsOf({ "result.json": '{"ok": true}', "reward.txt": "1" })).toMatchObject({ reward: 1, problems: [] });
    expect(factsOf({ "result.json": '{"ok": true}', "reward.txt": "1" }).facts!.reward_not_valid).toBeNull();
  });
});

describe("Harbor's result.json", () => {
  const good = harborResult({ task: "add", name: "add__1", rewards: { reward: 0.5 } });
  it.each<[string, object, object]>([
    [
      "a failure without a message",
      { exception_info: { exception_type: "AgentTimeoutError", exception_message: null } },
      { failure: { type: "AgentTimeoutError", message: "" } },
    ],
    ["no phases at all", { agent_execution: null, verifier: undefined, config: null }, { failure: null }],
    [
      "fields of a later version",
      { config: { environment: { type: "docker", gpus: [1] } }, steps: [{}] },
      { environment: { kind: "docker" } },
    ],
    [
      "a docker image and no type",
      { config: { environment: { docker_image: "x" } } },
      { environment: { kind: null, image: "x" } },
    ],
  ])("%s", (_name, more, facts) => {
    const one = factsOf({ "result.json": JSON.stringify({ ...good, ...more }) });
    expect(one).toMatchObject({ reward: 0.5, problems: [], facts: { kind: "harbor", trial_name: "add__1", ...facts } });
  });

  it.each<[string, object]>([
    ["no rewards yet", { verifier_result: null }],
    ["rewards that are null", { verifier_result: { rewards: null } }],
    ["empty rewards", { verifier_result: { rewards: {} } }],
    ["rewards of which no rule can read one", { verifier_result: { rewards: { reward: [1] } } }],
  ])("%s: the reward file of the trial is read", (_name, more) => {
    const text = JSON.stringify({ ...good, ...more });
    const one = factsOf({ "result.json": text, "verifier/reward.txt": "1" });
    expect(one).toMatchObject({ reward: 1, facts: { kind: "harbor", scores_source: "verifier/reward.txt" } });
  });

  it.each<[string, object]>([
    ["a list of rewards", { verifier_result: { rewards: [1] } }],
    ["a task without a name", { task_name: null }],
    ["a failure that is a text", { exception_info: "it failed" }],
  ])("%s: unknown, and told", (_name, more) => {
    const one = factsOf({ "result.json": JSON.stringify({ ...good, ...more }) });
    expect(one.scores).toBe(0);
    expect(one.problems.join()).toMatch(/^result.json: /);
  });
});

describe("JSON as other programs write it", () => {
  it("keeps texts that look like what is passed over", () => {
    const text = '{"a": "NaN", "b\\"NaN": [NaN, -Infinity, Infinity, "x NaN \\\\"], "c": 1}';
    expect(parseJsonText(text)).toEqual({ a: "NaN", 'b"NaN': [null, null, null, "x NaN \\"], c: 1 });
    for (const broken of ["", "{", "NaNN", "[1,]", '{"a": nan}'])
      expect(() => parseJsonText(broken)).toThrow(SyntaxError);
  });
});
