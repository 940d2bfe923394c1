import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTrajectory } from "@tito/format";
import { expect, it } from "vitest";
import { importLog } from "../../src/index.js";
import { postChat, scriptedEngine, startTestSidecar, turnsOf, user } from "../harness.js";
import { temporaryDir } from "../temporary.js";

const system = { role: "system", content: "You list files." };
const tools = [{ type: "function", function: { name: "ls", parameters: { type: "object", properties: {} } } }];

it("a log of what a harness sent and got makes the trajectory that the sidecar recorded live", async () => {
  const engine = await scriptedEngine([
    { match: { lastContains: "list" }, reply: { tool_calls: [{ name: "ls", arguments: { path: "." } }] } },
    { match: { lastContains: "a.txt" }, reply: { content: " There is one file.\n" } },
    { match: { lastContains: "again" }, reply: { content: "Still one." } },
  ]);
  const started = await startTestSidecar(engine, { sampling: "engine" });
  const lines: string[] = [];
  const ask = async (messages: object[]): Promise<{ content: string | null; tool_calls?: { id: string }[] }> => {
    const request = { messages, tools, temperature: 1, logprobs: true, return_token_ids: true };
    const response = (await (await postChat(started, request)).json()) as { choices: [{ message: never }] };
    lines.push(JSON.stringify({ trajectory_id: "t1", request, response, delivered: true }));
    return response.choices[0].message;
  };
  const first = await ask([system, user("list")]);
  const listed = [
    system,
    user("list"),
    first,
    { role: "tool", tool_call_id: first.tool_calls![0]!.id, content: "a.txt" },
  ];
  const second = await ask(listed);
  const trimmed = { role: "assistant", content: second.content!.trim() };
  await ask([...listed, trimmed, user("again")]);
  await ask([system, user("list")]);
  const live = turnsOf(await started.sealed());

  const dir = temporaryDir();
  const log = join(dir, "calls.jsonl");
  writeFileSync(log, `${lines.join("\n")}\n`);
  const report = await importLog({ logs: [log], out: join(dir, "out"), sampling: "neutral" });
  const imported = turnsOf(readTrajectory(join(dir, "out", "t1"), { mode: "strict" }));

  expect(report).toMatchObject({
    bad: [],
    warnings: [],
    trajectories: [{ turns: 4, status: "complete", defects: {} }],
  });
  expect(imported.map((turn) => turn.record.decision.reason)).toEqual([
    "first_turn",
    "extends_tip",
    "drift",
    "identical_prompt",
  ]);
  const essence = (turns: typeof live): unknown[] =>
    turns.map(({ promptIds, sampledIds, segment, record }) => {
      const { logprobs, lane, message, messages_keep, messages_new, prompt_keep, finish_reason, usage, defects } =
        record;
      const { kind, reason, evidence } = record.decision;
      const { cause, match_tokens } = evidence;
      return [
        { promptIds, sampledIds, segment, logprobs, lane, message, messages_keep, messages_new, prompt_keep },
        { finish_reason, usage, defects, kind, reason, cause, match_tokens },
      ];
    });
  expect(essence(imported)).toEqual(essence(live));
});
