import { existsSync } from "node:fs";
import { join } from "node:path";
import { turnsInCommitOrder } from "@tito/format";
import { explainTurn, inspectTrajectory, renderTurnExplanation } from "@tito/materializer";
import { expect } from "vitest";
import { DONE, TASK, toolLoop } from "./scripts.js";
import { harnessTest, stage } from "./stage.js";

const DIALECTS = new Map([
  ["pi", "chat"],
  ["pi-new", "chat"],
  ["opencode", "chat"],
  ["mini-swe-agent", "chat"],
  ["codex", "responses"],
  ["claude-code", "messages"],
]);

/** What an echo of oddly spelled arguments is seen as: the harness spelled them anew, or sent them back and the engine did. */
const DRIFT = new Map([
  ["pi", "tool_arguments_reserialised"],
  ["pi-new", "tool_arguments_reserialised"],
  ["opencode", "tool_arguments_reserialised"],
  ["mini-swe-agent", "tool_arguments_reserialised"],
  ["codex", "tool_arguments_reserialised"],
  ["claude-code", "tool_arguments_reserialised"],
]);

for (const [harness, dialect] of DIALECTS) {
  harnessTest(harness, "a tool loop with parallel calls is one segment, token for token as sampled", async () => {
    const { run, cwd, sealed } = await stage(harness, toolLoop(harness));
    const outcome = await run(TASK);
    expect(outcome).toMatchObject({ exitCode: 0, timedOut: false });
    expect(outcome.stdout + outcome.stderr).toContain(DONE);
    expect(existsSync(join(cwd, "a.txt"))).toBe(true);

    const { lane, turns, log } = await sealed();
    const main = lane("main");
    const last = harness === "mini-swe-agent" ? "tool_calls" : "stop";
    expect(main.map((turn) => turn.finish_reason)).toEqual(["tool_calls", "tool_calls", last]);
    expect(main.map((turn) => turn.decision.kind).slice(1)).toEqual(["append", "append"]);
    expect(main[1]?.message.tool_calls).toHaveLength(2);
    for (const turn of turns) {
      expect(turn.dialect).toBe(dialect);
      expect(turn.defects).toEqual([]);
      expect(turn.stream).toBe(harness === "mini-swe-agent" ? "none" : "live");
      // Also where the harness closes its connection right after the end, as Codex does.
      expect(log.deliveries.get(turn.call_id)?.map((delivery) => delivery.outcome)).toEqual(["delivered"]);
    }
  });

  harnessTest(harness, "arguments in another spelling open a segment that names the cause", async () => {
    const { run, sealed } = await stage(harness, toolLoop(harness, "odd"));
    expect(await run(TASK)).toMatchObject({ exitCode: 0, timedOut: false });
    const { lane, log } = await sealed();
    const [first, second] = lane("main");
    expect(second?.decision).toMatchObject({
      kind: "new_segment",
      reason: "drift",
      evidence: { cause: DRIFT.get(harness) },
    });
    // Every command says the same of it.
    const dir = log.dir;
    const at = turnsInCommitOrder(log).findIndex(({ record }) => record === second);
    expect(inspectTrajectory(dir).turns[at]?.cause).toBe(DRIFT.get(harness));
    const explained = explainTurn({ path: dir, turn: at });
    expect(explained.cause).toBe(DRIFT.get(harness));
    expect(renderTurnExplanation(explained)).toContain(`cause: ${DRIFT.get(harness)}, `);
    expect(second?.decision.evidence.kept_sampled).toBeGreaterThan(20);
    expect(first?.message.tool_calls?.[0]?.arguments).toContain(':  "echo');
  });
}
