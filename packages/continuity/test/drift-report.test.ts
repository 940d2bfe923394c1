import { expect, it } from "vitest";
import { driftReport, type ReportedTurn } from "../src/index.js";
import { Chat, calls, result, user } from "./chat.js";

it("counts turns and tokens per cause, and says the same for the same turns in another order of causes", () => {
  const turns: ReportedTurn[] = [];
  const chat = new Chat((turn, decision) => turns.push({ decision, prompt_tokens: turn.prompt_ids.length }));
  const echoed = calls("a");
  echoed.tool_calls![0]!.arguments = '{"cmd":"ls"}';
  chat.ask([user("go")], calls("a"));
  chat.ask([user("go"), echoed, result("a", "out")], calls("b"));
  chat.ask([user("other")], calls("c"));
  const report = driftReport(turns);
  const drifted = turns[1]!;
  const { against_tokens, match_tokens } = drifted.decision.evidence;
  expect(report).toMatchObject({ turns: 3, decisions: { append: 0, branch: 0, new_segment: 3 } });
  expect([...report.reasons]).toEqual([
    ["drift", 1],
    ["first_turn", 1],
    ["new_lineage", 1],
  ]);
  expect([...report.causes]).toEqual([
    [
      "tool_arguments_reserialised",
      { turns: 1, lost_tokens: against_tokens - match_tokens, reread_tokens: drifted.prompt_tokens - match_tokens },
    ],
  ]);
  expect(against_tokens).toBeGreaterThan(match_tokens);
  expect(driftReport(turns.toReversed())).toEqual(report);
  expect(driftReport([])).toMatchObject({ turns: 0, causes: new Map() });
});
