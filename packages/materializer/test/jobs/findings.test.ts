/** What a report says beside its counts: ids that were lost, text that splits every turn, the two figures of docs/continuity.md. */
import { join } from "node:path";
import { METRICS } from "@tito/continuity";
import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { assembleEvidence } from "../../src/build/assemble.js";
import { continuityFigures } from "../../src/build/continuity-figures.js";
import { inspectTrajectory } from "../../src/explain/inspect.js";
import { renderReport } from "../../src/explain/report.js";
import { materialize } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";
import { temporaryDirectory } from "../temporary.js";
import { type Call, evidenceOf } from "../trajectories.js";
import { putFile, type TrajectorySpec, writeTrajectory } from "../written.js";

const root = temporaryDirectory();

async function output(name: string, calls: readonly Call[], more: Partial<TrajectorySpec> = {}) {
  const dir = join(root, name, "task__1");
  putFile(join(dir, "reward.json"), { reward: 1 });
  const trajectory = await writeTrajectory(dir, { id: `t-${name}`, calls, ...more });
  const report = await materialize({ paths: [join(root, name)], out: join(root, `${name}.jsonl`) });
  return { report, findings: report.manifest.findings!, inspection: inspectTrajectory(trajectory) };
}

const system = (content: string): Message => ({ role: "system", content });
const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

describe("capture loss (O.97)", () => {
  it("is told in tokens of the engine's own count, first of all warnings, and by inspect", async () => {
    const usage = { prompt_tokens: 2, completion_tokens: 395, cached_tokens: null };
    const calls: Call[] = [
      { prompt: [1, 2], sampled: [3, 4, 5, 6, 7], usage, defects: ["completion_count_disagrees"] },
      { prompt: [1, 8], sampled: [9] },
    ];
    const { report, findings, inspection } = await output("lossy", calls);
    const loss = { sampled_tokens: 396, lost_tokens: 390, turns: 2, lost_turns: 1, uncounted_turns: 0, lost_calls: 0 };
    expect(findings.capture_loss).toEqual([{ engine: "vllm 0.30.0 tiny", ...loss }]);
    expect(inspection.capture_loss).toEqual(findings.capture_loss);
    expect(report.manifest.warnings[0]).toBe(
      "capture loss: vllm 0.30.0 tiny: 390 of 396 sampled tokens lost their ids (in 1 of 2 turns)",
    );
    expect(JSON.stringify(renderReport(report))).toContain('"capture loss"');
  });

  it("counts calls that lost every id, and turns that lost their counts", async () => {
    const after: TrajectorySpec["after"] = (writer) =>
      writer.writeJournal("uncaptured", {
        call_id: "lost",
        reason: "sampled_ids_missing",
        status: 200,
        detail: "",
        lost_tokens: true,
        at_ms: 1,
      });
    const uncounted = { prompt_tokens: null, completion_tokens: null, cached_tokens: null };
    const calls: Call[] = [
      { prompt: [1], sampled: [2] },
      { prompt: [1, 2, 3], sampled: [4], usage: uncounted, defects: ["usage_lost"] },
    ];
    const { findings, report } = await output("lost-calls", calls, { after });
    expect(findings.capture_loss).toMatchObject([{ lost_tokens: 0, uncounted_turns: 1, lost_calls: 1 }]);
    expect(report.manifest.warnings[0]).toMatch(/1 turns lost the engine's count.*; 1 calls lost every id/);
  });

  it("says nothing where nothing was lost", async () => {
    const { findings, report } = await output("whole", [{ prompt: [1], sampled: [2] }]);
    expect(findings.capture_loss).toEqual([]);
    expect(report.manifest.warnings).toEqual([]);
  });
});

describe("text that changes by itself (O.96)", () => {
  /** Every call has another text in its first message, so that every call opens a segment. */
  const splitting = (texts: string[]): Call[] =>
    texts.map((text, i) => ({
      prompt: [50 + i, 1, 2, ...Array.from({ length: i }, (_, k) => [10 + k, 20]).flat()],
      sampled: [10 + i],
      messages: [
        system(text),
        user("Go."),
        ...Array.from({ length: i }, (_, k) => [assistant(`reply ${10 + k}`), user("on")]).flat(),
      ],
      message: assistant(`reply ${10 + i}`),
    }));

  it.each([
    [
      "a clock",
      (i: number) => `You are an agent.\nCurrent time: 2026-12-01 10:0${i}:17\nBe brief.`,
      '"Current time:" in the system message',
    ],
    ["a budget", (i: number) => `Tokens left: ${9000 - 137 * i}. Be brief.`, '"Tokens left:" in the system message'],
    [
      "a billing header",
      (i: number) => `x-anthropic-billing-header: cc_version=2.1.332.a${i}f; You are Claude.`,
      "billing_version",
    ],
    ["a token marker", (i: number) => `Hi <total_tokens>${9000 - i} left</total_tokens> there`, "total_tokens"],
  ])("%s is named with the segments that it opened and the tokens that were read again", async (name, text, called) => {
    const { findings, inspection, report } = await output(
      `volatile-${name.replaceAll(" ", "-")}`,
      splitting([0, 1, 2].map(text)),
    );
    expect(findings.volatile_text).toEqual([
      // Prompts of 5 and 7 ids, none of them kept.
      { text: called, segments: 2, reread_tokens: 12, turn: 1 },
    ]);
    expect(inspection.volatile_text).toEqual(findings.volatile_text);
    expect(report.manifest.warnings.join("\n")).toContain(
      `${called} changes by itself: it opened 2 segments, and 12 prompt tokens were read again`,
    );
  });

  it("several in one message are told one by one", async () => {
    const text = (i: number) => `Now: 10:0${i}\n${"You write code. ".repeat(20)}\nBudget: ${900 - i} tokens`;
    const { findings } = await output("volatile-two", splitting([0, 1].map(text)));
    expect(findings.volatile_text.map((cost) => cost.text)).toEqual([
      '"Budget:" in the system message',
      '"Now:" in the system message',
    ]);
  });

  it("a whole other system text is no such text", async () => {
    const texts = ["You write code. ".repeat(20), "You review text. ".repeat(20)];
    expect((await output("other-texts", splitting(texts))).findings.volatile_text).toEqual([]);
  });
});

describe("the two figures (O.95)", () => {
  it("are named as the continuity engine names them, and printed by report and inspect", async () => {
    const calls: Call[] = [
      { prompt: [1], sampled: [2] },
      { prompt: [1, 2, 9, 3], sampled: [4], seam: 1, shadow: { full_tokens: 4, match_tokens: 1 } },
      { prompt: [1, 2, 9, 3, 4, 9, 5], sampled: [6], seam: 1, shadow: { full_tokens: 7, match_tokens: 7 } },
      { prompt: [1, 2, 9, 3, 4, 9, 5, 6, 9, 7], sampled: [8], seam: 1 },
    ];
    const { findings, inspection, report } = await output("figures", calls);
    expect(findings.continuity).toEqual({
      [METRICS.prompt_differs]: 1,
      prompts_compared: 3,
      prompts_not_compared: 1,
      [METRICS.trained_not_sampled]: 0,
    });
    expect(inspection.continuity).toEqual(findings.continuity);
    const text = JSON.stringify(renderReport(report));
    expect(text).toContain("turns whose prompt differs from canonical replay (of 3 compared)");
    expect(text).toContain("tokens trained but not sampled");
  });

  it("a token that trains and is not the one that was sampled there is counted", () => {
    const [one] = assembleEvidence(
      [evidenceOf([{ prompt: [1], sampled: [2, 3] }])],
      loadPolicy(null),
      null,
    ).trajectories;
    expect(continuityFigures(one!).trained_but_not_sampled).toBe(0);
    one!.built.samples[0]!.line.tokens[2] = 99;
    expect(continuityFigures(one!).trained_but_not_sampled).toBe(1);
  });
});
