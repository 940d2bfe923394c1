/** What becomes of a session: continued by another process, interrupted, split into sub-agents. */
import { expect } from "vitest";
import { DONE, finalReply, SIDE_CALLS, shellCall, spell, TASK, toolLoop } from "./scripts.js";
import { harnessTest, stage } from "./stage.js";

const AGAIN = { name: "again", match: { contains: "TITO-AGAIN" }, reply: { content: "Once more." } };

for (const harness of ["pi", "pi-new", "opencode", "codex", "claude-code"]) {
  harnessTest(harness, "a resumed session extends the segment of the first process", async () => {
    const { run, sealed } = await stage(harness, [SIDE_CALLS, AGAIN, ...toolLoop(harness)]);
    expect(await run(TASK)).toMatchObject({ exitCode: 0, timedOut: false });
    const outcome = await run("TITO-AGAIN: once more", { resume: true });
    expect(outcome).toMatchObject({ exitCode: 0, timedOut: false });
    expect(outcome.stdout).toContain("Once more.");
    const { lane } = await sealed();
    expect(
      lane("main")
        .map((turn) => turn.decision.kind)
        .slice(1),
    ).toEqual(["append", "append", "append"]);
  });

  harnessTest(harness, "an interrupted run keeps what was sampled, and the session goes on", async () => {
    const endless = {
      name: "endless",
      match: { contains: "TITO-TASK" },
      reply: { content: "A long answer that nobody is going to read to its end. ".repeat(20) },
      fault: { kind: "hang_after", tokens: 20 },
    };
    const { run, wait, sealed } = await stage(harness, [SIDE_CALLS, AGAIN, endless], { sidecar: { orphanGraceMs: 0 } });
    const interrupt = new AbortController();
    // OpenCode takes no notice of a single SIGINT and is killed.
    const running = run(TASK, { interrupt: interrupt.signal });
    await wait("hanging", 1);
    interrupt.abort();
    await running;
    const outcome = await run("TITO-AGAIN: once more", { resume: true });
    expect(outcome.stdout).toContain("Once more.");
    const { lane } = await sealed();
    const [broken, after] = lane("main");
    expect(broken).toMatchObject({ finish_reason: "abort", defects: ["client_gone"] });
    expect(broken?.sampled_ids).toHaveLength(20);
    // A turn that was cut short is no checkpoint, however much of it the harness kept.
    expect(after).toMatchObject({ finish_reason: "stop", defects: [], decision: { kind: "new_segment" } });
  });
}

/** The tool with which a harness starts a sub-agent, and its arguments. */
const SUB_AGENTS = new Map<string, (task: string) => { name: string; arguments: string }>([
  [
    "opencode",
    (task) => ({
      name: "task",
      arguments: spell({ description: "sub work", prompt: task, subagent_type: "general" }),
    }),
  ],
  [
    "claude-code",
    (task) => ({
      name: "Agent",
      arguments: spell({
        description: "sub work",
        prompt: task,
        subagent_type: "general-purpose",
        run_in_background: false,
      }),
    }),
  ],
  ["codex", (task) => ({ name: "multi_agent_v1__spawn_agent", arguments: spell({ message: task }) })],
]);

for (const [harness, spawn] of SUB_AGENTS) {
  harnessTest(harness, "sub-agents at the same time have a lane and a segment each", async () => {
    const call = (command: string) => shellCall(harness, command);
    // Codex does not wait for its sub-agents by itself.
    const waitForBoth = call("until [ -e sub-one ] && [ -e sub-two ]; do sleep 0.1; done; echo both-done");
    const script = [
      SIDE_CALLS,
      ...["one", "two"].map((name) => ({
        name: `sub ${name}`,
        match: { contains: `SUB-TASK-${name}`, excludes: ["TITO-TASK", `touch sub-${name}`] },
        reply: { content: "Working. ", tool_calls: [call(`touch sub-${name}`)] },
      })),
      {
        name: "sub end",
        match: { contains: ["SUB-TASK", "touch sub-"], excludes: "TITO-TASK" },
        reply: { content: "Reporting." },
      },
      {
        name: "spawn",
        match: { contains: "TITO-TASK", excludes: "SUB-TASK" },
        reply: { content: "Delegating. ", tool_calls: [spawn("SUB-TASK-one: report"), spawn("SUB-TASK-two: report")] },
      },
      {
        name: "wait",
        match: { contains: ["TITO-TASK", "SUB-TASK"], excludes: "both-done" },
        reply: { content: "Waiting. ", tool_calls: [waitForBoth] },
      },
      { name: "end", match: { contains: ["TITO-TASK", "both-done"] }, reply: finalReply(harness) },
    ];
    const { run, sealed } = await stage(harness, script);
    const outcome = await run(TASK);
    expect(outcome).toMatchObject({ exitCode: 0, timedOut: false });
    expect(outcome.stdout).toContain(DONE);
    const { lane, turns, log } = await sealed();
    const subs = [...new Set(turns.map((turn) => turn.lane).filter((name) => name.startsWith("sub:")))];
    expect(subs).toHaveLength(2);
    // Codex may be told afterwards that a sub-agent has ended, and then answers once more.
    const [first, second, ...rest] = lane("main").map((turn) => turn.finish_reason);
    expect([first, second, ...new Set(rest)]).toEqual(["tool_calls", "tool_calls", "stop"]);
    const segmentsOf = (name: string) =>
      new Set(
        log.segments
          .filter((segment) => segment.turns.some((turn) => turn.record.lane === name))
          .map((segment) => segment.segment),
      );
    for (const name of ["main", ...subs]) expect(segmentsOf(name).size).toBe(1);
    for (const name of subs) expect(lane(name)[0]?.lane_evidence.rule).toContain("sub_agent");
  });
}
