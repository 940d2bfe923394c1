/** The engine goes wrong in the middle of a task, and the harness does its task all the same. */
import { expect } from "vitest";
import { DONE, TASK, toolLoop } from "./scripts.js";
import { harnessTest, stage } from "./stage.js";

const HARNESSES = ["pi", "pi-new", "opencode", "mini-swe-agent", "codex", "claude-code"];

/** How the engine fails behind the twelfth token of the second answer, and what the turn then is. */
const BREAKS = new Map([
  ["abort", { fault: { kind: "abort", afterTokens: 12 }, finish: "abort", defect: "aborted" }],
  ["reset", { fault: { kind: "cut_stream", afterTokens: 12 }, finish: "unknown", defect: "stream_cut" }],
  ["error", { fault: { kind: "error_event", afterTokens: 12 }, finish: "error", defect: "engine_error" }],
]);

/** The task, its second step failing once in this way. */
function failingLoop(harness: string, fault: object): object[] {
  const rules = toolLoop(harness) as { name: string }[];
  const second = rules.find((rule) => rule.name === "parallel");
  if (second === undefined) throw new Error("the script has no second step");
  return rules.flatMap((rule) =>
    rule === second ? [{ ...second, name: "failing", times: 1, fault }, second] : [rule],
  );
}

for (const harness of HARNESSES) {
  const streams = harness !== "mini-swe-agent";
  const end = streams ? "stop" : "tool_calls";

  harnessTest(harness, "a busy engine is asked again unseen", async () => {
    const { run, sealed } = await stage(harness, failingLoop(harness, { kind: "status", status: 503 }));
    const outcome = await run(TASK);
    expect(outcome).toMatchObject({ exitCode: 0, timedOut: false });
    expect(outcome.stdout + outcome.stderr).toContain(DONE);
    const { lane, log } = await sealed();
    expect(lane("main").map((turn) => [turn.finish_reason, turn.defects])).toEqual([
      ["tool_calls", []],
      ["tool_calls", []],
      [end, []],
    ]);
    expect(log.uncaptured).toMatchObject([{ reason: "engine_refused", status: 503, lost_tokens: false }]);
  });

  for (const [name, { fault, finish, defect }] of BREAKS) {
    harnessTest(
      harness,
      `an answer that ends in ${name} is recorded as far as it came, and the task is done`,
      async () => {
        const { run, sealed } = await stage(harness, failingLoop(harness, fault));
        const outcome = await run(TASK);
        expect(outcome).toMatchObject({ exitCode: 0, timedOut: false });
        expect(outcome.stdout + outcome.stderr).toContain(DONE);
        const { lane } = await sealed();
        const whole = lane("main").filter((turn) => turn.defects.length === 0);
        expect(whole.map((turn) => turn.finish_reason)).toEqual(["tool_calls", "tool_calls", end]);
        if (!streams) return;
        const broken = lane("main").filter((turn) => turn.defects.length > 0);
        expect(broken.map((turn) => [turn.finish_reason, turn.defects, turn.sampled_ids.length])).toEqual([
          [finish, [defect], 12],
        ]);
        // Sampled again from the same prompt: a sibling, never a continuation of the broken one.
        expect(whole[1]?.decision).toMatchObject({ kind: "branch", reason: "identical_prompt" });
      },
    );
  }
}
