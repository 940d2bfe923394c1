/** Side calls in wordings that no rule knows: they are listed, and a user's own rules tell them apart. */
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { HARNESS_RULES } from "@tito/continuity";
import type { Message, ToolDefinition } from "@tito/format";
import { describe, expect, it } from "vitest";
import { explainTurn } from "../../src/explain/explain-turn.js";
import { inspectTrajectory } from "../../src/explain/inspect.js";
import { materialize } from "../../src/jobs/materialize.js";
import { readEvidence } from "../../src/read/read.js";
import { type LaneRules, parseLaneRules } from "../../src/recipe/lane-rules.js";
import { loadPolicy, policyDigest, printPolicy } from "../../src/recipe/policy.js";
import { temporaryDirectory } from "../temporary.js";
import type { Call } from "../trajectories.js";
import { putFile, writeTrajectory } from "../written.js";

const root = temporaryDirectory();
const EXAMPLES = resolve(import.meta.dirname, "..", "..", "..", "..", "examples", "lane-rules");
const tools: ToolDefinition[] = [{ name: "read", parameters: "{}" }];
const system = (content: string): Message => ({ role: "system", content });
const user = (content: string): Message => ({ role: "user", content });
const read = (id: string): Message => ({
  role: "assistant",
  content: null,
  tool_calls: [{ id, name: "read", arguments: "{}" }],
});
const result = (id: string): Message => ({ role: "tool", tool_call_id: id, content: "text" });

/** A title call in unknown words comes first; what follows was recorded as a sub-agent for that reason. */
const TASK = [system("You are an agent."), user("Fix the bug.")];
const CALLS: Call[] = [
  {
    prompt: [90, 91],
    sampled: [92, 93],
    messages: [system("Benenne das Gespräch in fünf Worten."), user("Fix the bug.")],
    sampling: { max_tokens: 40 },
    headers: { "user-agent": "mine/1.0" },
  },
  { prompt: [1, 2], sampled: [3, 4], messages: TASK, message: read("c1"), tools, lane: "sub:abc" },
  {
    prompt: [1, 2, 3, 4, 5],
    sampled: [6],
    messages: [...TASK, read("c1"), result("c1")],
    message: { role: "assistant", content: "Done." },
    tools,
    lane: "sub:abc",
  },
];
const RULES = `
harness: mine
user_agents: [mine/]
lanes:
  - name: title
    when: {tools: none, system_starts: "Benenne das"}
    lane: {aux: title}
`;
const rules = parseLaneRules(RULES, "rules.yaml");

async function trial(name: string, calls: readonly Call[] = CALLS): Promise<string> {
  const dir = join(root, name, "task__1");
  putFile(join(dir, "reward.json"), { reward: 1 });
  return writeTrajectory(dir, { id: `t-${name}`, calls });
}
const lanesOf = (dir: string, own: LaneRules[]) => readEvidence(dir, "t", own).turns.map((turn) => turn.lane);

describe("a side call that no rule names (O.94)", () => {
  it("is listed by inspect and by the report, with why, how much it trains, and the command that explains it", async () => {
    const dir = await trial("listed");
    const [suspect, ...others] = inspectTrajectory(dir).side_call_suspects;
    expect(others).toEqual([]);
    expect(suspect).toMatchObject({ turn: 0, lane: "main", trained_tokens: 2 });
    expect(suspect!.signs).toEqual([
      "no tools offered while the agent's other calls offer some",
      "an output limit of 40",
      "another system text than most calls",
      "a single call that nothing continues",
    ]);
    const { manifest } = await materialize({ paths: [join(root, "listed")], out: join(root, "listed.jsonl") });
    expect(manifest.findings!.side_calls).toMatchObject({ turns: 1, trained_tokens: 2 });
    expect(manifest.warnings.join("\n")).toMatch(/1 turn looks like a side call .* 2 tokens.*--lane-rules/);
    expect(manifest.warnings.join("\n")).toContain("tito explain task__1/t-listed --turn 0");
  });

  it("does not train under a rule of the user, and the conversation behind it is the main one again", async () => {
    const dir = await trial("ruled");
    expect(lanesOf(dir, [])).toEqual(["main", "sub:abc", "sub:abc"]);
    expect(lanesOf(dir, [rules])).toEqual(["aux:title", "main", "main"]);
    const policy = loadPolicy(null, { laneRules: [rules] });
    const { manifest } = await materialize({ paths: [join(root, "ruled")], out: join(root, "ruled.jsonl"), policy });
    expect(manifest.coverage.masked).toEqual({ auxiliary: 2 });
    expect(manifest.findings!.side_calls.turns).toBe(0);
    expect(explainTurn({ path: dir, turn: 0, policy }).verdicts[0]!.reason).toBe("auxiliary");
    expect(inspectTrajectory(dir, policy).turns.map((turn) => turn.lane)).toEqual(["aux:title", "main", "main"]);
    expect(policyDigest(policy)).not.toBe(policyDigest(loadPolicy(null)));
    expect(loadPolicy(printPolicy(policy))).toEqual(policy);
  });

  it.each([
    ["a quota probe", { messages: [user("ping?")], sampling: { max_tokens: 1 } }, { max_tokens_at_most: 1 }],
    ["a summary for display", { messages: [system("Fasse zusammen."), user("log")] }, { system_contains: "Fasse" }],
    [
      "a title under the agent's own system text",
      { messages: [TASK[0]!, user("Title?")] },
      { last_user_equals: "Title?" },
    ],
  ])("%s is found and named likewise, wherever it stands", async (name, fields, when) => {
    const side: Call = { prompt: [80], sampled: [81, 82], ...fields };
    const main = CALLS.slice(1).map((call) => ({ ...call, lane: "main" as const }));
    for (const [at, calls] of [
      [side, ...main],
      [main[0]!, side, main[1]!],
      [...main, side],
    ].entries()) {
      const dir = await trial(`${name.replaceAll(/[^a-z]+/g, "-")}-${at}`, calls);
      const turn = [0, 1, 2][at]!;
      expect(inspectTrajectory(dir).side_call_suspects.map((each) => each.turn)).toEqual([turn]);
      const own = parseLaneRules(
        JSON.stringify({ harness: "x", lanes: [{ name: "side", when, lane: { aux: "side" } }] }),
        "x",
      );
      expect(lanesOf(dir, [own])[turn]).toBe("aux:side");
    }
  });

  it("an agent without tools, a sub-agent with tools and a conversation that goes on are no suspects", async () => {
    const plain: Call[] = [
      { prompt: [1], sampled: [2], messages: TASK },
      {
        prompt: [1, 2, 3],
        sampled: [4],
        messages: [...TASK, { role: "assistant", content: "reply 2" }, user("go on")],
      },
    ];
    expect(inspectTrajectory(await trial("plain", plain)).side_call_suspects).toEqual([]);
    const small = { sampling: { max_tokens: 12 } };
    const split: Call[] = [
      ...CALLS.slice(1).map((call) => ({ ...call, lane: "main" as const })),
      // The window is nearly full, and the history came back otherwise.
      {
        prompt: [1, 2, 77],
        sampled: [78],
        messages: [...TASK, read("c1"), { ...result("c1"), content: "cut" }],
        tools,
        ...small,
      },
    ];
    expect(inspectTrajectory(await trial("split", split)).side_call_suspects).toEqual([]);
    const withSub: Call[] = [
      ...CALLS.slice(1).map((call) => ({ ...call, lane: "main" as const })),
      { prompt: [70], sampled: [71], messages: [system("You search."), user("Find x.")], tools, lane: "sub:s" },
    ];
    expect(inspectTrajectory(await trial("with-sub", withSub)).side_call_suspects).toEqual([]);
  });

  it("rules for another user agent do not touch a call", async () => {
    const dir = await trial("other-agent");
    expect(lanesOf(dir, [{ ...rules, user_agents: ["theirs/"] }])[0]).toBe("main");
  });
});

describe("the rule file", () => {
  it.each([
    ["an unknown key", "harness: x\nlanes: []\nlane: []", /lane/],
    ["an unknown condition", "harness: x\nlanes: [{name: a, when: {text: b}, lane: main}]", /when/],
    ["no condition", "harness: x\nlanes: [{name: a, when: {}, lane: main}]", /a condition is needed/],
    ["a lane of no kind", "harness: x\nlanes: [{name: a, when: {tools: none}, lane: side}]", /lane/],
    ["a header in capitals", "harness: x\nlanes: [{name: a, when: {header: X-A}, lane: main}]", /lower-case/],
    [
      "a header's value without its name",
      "harness: x\nlanes: [{name: a, when: {header_contains: b}, lane: main}]",
      /name of a header/,
    ],
    ["no harness", "lanes: []", /harness/],
    ["no YAML", "harness: [", /not valid YAML/],
  ])("with %s is refused with its place", (_what, text, words) => {
    expect(() => parseLaneRules(text, "mine.yaml")).toThrow(words);
    expect(() => parseLaneRules(text, "mine.yaml")).toThrow(/mine\.yaml/);
  });

  it.each(HARNESS_RULES.map((each) => each.harness))("the example of %s is the rule data that ships", (harness) => {
    const text = readFileSync(join(EXAMPLES, `${harness}.yaml`), "utf8");
    expect(parseLaneRules(text, harness)).toEqual(HARNESS_RULES.find((each) => each.harness === harness));
  });

  it("the example in docs/lane-rules.md is one", () => {
    const doc = readFileSync(resolve(EXAMPLES, "..", "..", "docs", "lane-rules.md"), "utf8");
    const example = /```yaml\n([\s\S]*?)```/.exec(doc)![1]!;
    writeFileSync(join(root, "example.yaml"), example);
    expect(parseLaneRules(example, "example").lanes.map((rule) => rule.name)).toHaveLength(4);
  });
});
