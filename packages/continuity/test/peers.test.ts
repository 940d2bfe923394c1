/** What users of other recorders reported about continuity, one test each. The numbers are those of the list of reports. */
import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { classifyLane, commit, createState, decide, detectHarness, lineIds, setDelivery } from "../src/index.js";
import { bareTurn } from "./bare-turn.js";
import { Chat, calls, result, system, user } from "./chat.js";
import { Random } from "./random-harness.js";

const thinking = (message: Message, reasoning: string): Message => ({ ...message, reasoning });

describe("C1 re-tokenisation and template drift", () => {
  it("C1.2 C1.3: a line is made of recorded ids; its length is that of the prompt and the sampled ids", () => {
    const chat = new Chat();
    const first = [user("go")];
    chat.ask(first, calls("a"));
    const decision = chat.ask([...first, calls("a"), result("a", "out")], { role: "assistant", content: "done" });
    const turn = chat.state.turns.get("t2")!;
    expect(lineIds(chat.state, { segment: decision.segment, tokens: turn.end_tokens })).toHaveLength(turn.end_tokens);
    expect(() => lineIds(chat.state, { segment: decision.segment, tokens: turn.end_tokens + 1 })).toThrow(
      /no .* tokens/,
    );
  });

  it("C1.6: a template that rewrites history forks in full history with its cause, and not at all in incremental mode", () => {
    const chat = new Chat();
    const first = [user("think")];
    const reply = thinking({ role: "assistant", content: "yes" }, "deep thought");
    chat.ask(first, reply);
    const second = [...first, reply, user("more")];
    expect(chat.find(second)).toMatchObject({ kind: "checkpoint", call_id: "t1", from: 2 });
    const decision = chat.ask(second, { role: "assistant", content: "again" }, { template: "strip" });
    expect(decision).toMatchObject({ reason: "drift", evidence: { cause: "template_rewrite" } });
  });

  it("C1.7 C1.8: no prompt whatever makes the engine fail; what matches nothing opens a segment with a reason", () => {
    const random = new Random(5);
    const state = createState();
    for (let commitNumber = 1; commitNumber <= 2000; commitNumber++) {
      const ids = (limit: number): number[] => Array.from({ length: random.below(limit) }, () => random.below(3));
      const turn = bareTurn(`t${commitNumber}`, ids(12), ids(4));
      const decision = decide(state, turn);
      expect(["append", "branch", "new_segment"]).toContain(decision.kind);
      commit(state, turn, decision, commitNumber);
    }
  });
});

describe("C2 reasoning", () => {
  it("C2.14: sampled reasoning stays in the line when the harness echoes only the answer", () => {
    const chat = new Chat();
    const reply = thinking(calls("a"), "why not");
    chat.ask([user("go")], reply);
    const echoed = [user("go"), calls("a"), result("a", "out")];
    expect(chat.find(echoed)).toMatchObject({
      kind: "checkpoint",
      kept: [{ message: 1, difference: "reasoning_absent" }],
    });
    expect(chat.ask(echoed, calls("b"))).toMatchObject({ reason: "drift", evidence: { cause: "reasoning_dropped" } });
  });
});

describe("C3 tool calls", () => {
  const spelled = (id: string, args: string, name = "bash"): Message => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, name, arguments: args }],
  });

  it("C3.17: re-serialised arguments are the same message; the line keeps the sampled ids", () => {
    const chat = new Chat();
    chat.ask([user("go")], spelled("a", '{"b":  1.0, "a": "\\u00e9"}'));
    const next = [user("go"), spelled("a", '{"a":"é","b":1}'), result("a", "out")];
    expect(chat.find(next)).toMatchObject({ kind: "checkpoint", kept: [{ difference: "arguments_format" }] });
  });

  it("C3.17: a default that a harness adds to the arguments is another value", () => {
    const chat = new Chat();
    chat.ask([user("go")], spelled("a", '{"cmd":"ls"}'));
    const next = [user("go"), spelled("a", '{"cmd":"ls","timeout":120}'), result("a", "out")];
    expect(chat.find(next)).toMatchObject({ kind: "fallback", reason: "arguments_changed" });
  });

  it("C3.18: a listed rename is the same call, an unlisted one is not", () => {
    const chat = new Chat();
    chat.ask([user("go")], spelled("a", "{}", "KillShell"));
    const next = (name: string): Message[] => [user("go"), spelled("a", "{}", name), result("a", "out")];
    expect(chat.find(next("TaskStop"), "claude")).toMatchObject({
      kind: "checkpoint",
      kept: [{ difference: "name_listed" }],
    });
    expect(chat.find(next("TaskStop"), null)).toMatchObject({ kind: "fallback", reason: "name_changed" });
    expect(chat.find(next("Other"), "claude")).toMatchObject({ kind: "fallback", reason: "name_changed" });
  });

  it("C3.21: a changed tools list is named, also when a summary call drops the tools", () => {
    const chat = new Chat();
    chat.ask([user("go")], calls("a"));
    const next = [user("go"), calls("a"), result("a", "out")];
    expect(chat.ask(next, calls("b"), { tools: "two" })).toMatchObject({
      kind: "new_segment",
      reason: "tools_changed",
    });
    const summary = [...next, user("summarise")];
    const dropped = chat.ask(summary, { role: "assistant", content: "sum" }, { tools: "", lane: "compaction" });
    expect(dropped).toMatchObject({ reason: "tools_changed" });
  });

  it("C3.25: two to eight parallel calls are matched by their ids; results in another order are new text, not another call", () => {
    for (let count = 2; count <= 8; count++) {
      const ids = Array.from({ length: count }, (_, i) => `p${i}`);
      const results = ids.map((id) => result(id, `out ${id}`));
      const chat = new Chat();
      chat.ask([user("go")], calls(...ids));
      const shuffled = [user("go"), calls(...ids), ...results.toReversed()];
      expect(chat.find(shuffled)).toMatchObject({ kind: "checkpoint", from: 2, kept: [] });
      expect(chat.ask(shuffled, calls("next"))).toMatchObject({ kind: "append" });
      const reordered = [user("go"), calls(...ids), ...results, calls("next"), result("next", "x")];
      expect(chat.find(reordered)).toMatchObject({ kind: "fallback", reason: "message_missing" });
    }
  });
});

describe("C5 truncation and abort", () => {
  it("C5.37: an aborted turn is kept on its line and is never extended, whatever the prompt holds", () => {
    const state = createState();
    const whole = bareTurn("a", [1], [2]);
    commit(state, whole, decide(state, whole), 1);
    const cut = bareTurn("b", [1, 2, 3], [4, 5], { checkpointable: false });
    expect(decide(state, cut).kind).toBe("append");
    commit(state, cut, decide(state, cut), 2);
    const next = bareTurn("c", [1, 2, 3, 4, 5, 6], [7]);
    expect(decide(state, next)).toMatchObject({ kind: "branch", evidence: { checkpoint_call_id: "a" } });
  });
});

describe("C6 branches, sub-agents, compaction", () => {
  it("C6.40: interleaved sub-agents never thrash: every line appends, in every order", () => {
    const random = new Random(11);
    for (let round = 0; round < 200; round++) {
      const lengths = [1 + random.below(6), 1 + random.below(6), 1 + random.below(6)];
      const order = lengths
        .flatMap((length, lane) => Array.from({ length }, () => lane))
        .sort(() => random.next() - 0.5);
      const state = createState();
      const lines: number[][] = [[100], [200], [300]];
      const segments = new Map<number, number>();
      order.forEach((lane, i) => {
        const turn = bareTurn(`t${i}`, [...lines[lane]!, 7], [1000 + i]);
        const decision = decide(state, turn);
        expect(decision.kind).toBe(segments.has(lane) ? "append" : "new_segment");
        expect(segments.get(lane) ?? decision.segment).toBe(decision.segment);
        segments.set(lane, decision.segment);
        commit(state, turn, decision, i + 1);
        lines[lane] = [...turn.prompt_ids, ...turn.sampled_ids];
      });
    }
  });

  it("C6.41 C6.43: every branch is recorded, and sampled ids that branches share are stored and owned once", () => {
    const state = createState();
    const turns = [bareTurn("a", [1], [2, 3]), bareTurn("b", [1, 2, 3, 4], [5]), bareTurn("c", [1, 2, 3, 6], [7])];
    const stored = turns.map((turn, i) => {
      const decision = decide(state, turn);
      commit(state, turn, decision, i + 1);
      return turn.prompt_ids.length - decision.prompt_keep + turn.sampled_ids.length;
    });
    expect(stored).toEqual([3, 2, 2]);
    expect([...state.segments.keys()]).toEqual([1, 2]);
  });

  it("C6.45 C6.46 C6.47: a summary is a turn of its own in the compaction lane, and what follows opens a segment that says so", () => {
    const chat = new Chat();
    const prologue = [system("be brief"), user("do the whole job")];
    chat.ask(prologue, calls("a"));
    const request: Message[] = [system("You are a context summarization assistant"), user("as text")];
    const header = (name: string): string | undefined => (name === "user-agent" ? "pi/1.6.0" : undefined);
    const input = { header, path: "/v1/chat/completions", messages: request, tools: 0, max_tokens: null };
    const { lane } = classifyLane(input, detectHarness(null, header));
    expect(lane).toBe("compaction");
    const summary: Message = { role: "assistant", content: "The user wants the whole job done." };
    expect(chat.ask(request, summary, { lane, tools: "" }).reason).toBe("new_lineage");
    const compacted = [system("be brief"), user("So far: The user wants the whole job done.")];
    expect(chat.ask(compacted, calls("b"))).toMatchObject({ reason: "compaction", evidence: { cause: "compaction" } });
  });
});

describe("C7 retries and delivery", () => {
  it("C7.51: a rollback to any earlier state branches there and never fails", () => {
    const chat = new Chat();
    const history: Message[] = [];
    for (let i = 0; i < 5; i++) {
      history.push(user(`q${i}`));
      const reply: Message = { role: "assistant", content: `a${i}` };
      chat.ask([...history], reply);
      history.push(reply);
    }
    for (let back = 2; back < 10; back += 2) {
      const decision = chat.ask([...history.slice(0, back), user(`other ${back}`)], {
        role: "assistant",
        content: `b${back}`,
      });
      expect(decision).toMatchObject({
        kind: "branch",
        reason: "sibling",
        evidence: { checkpoint_call_id: `t${back / 2}` },
      });
    }
  });

  it("C7.52: of two answers with the same ids the delivered one is extended, whichever came first", () => {
    for (const delivered of ["a", "b"]) {
      const state = createState();
      for (const [i, name] of ["a", "b"].entries()) {
        const turn = bareTurn(name, [1], [2]);
        commit(state, turn, decide(state, turn), i + 1);
      }
      setDelivery(state, delivered, "delivered");
      expect(decide(state, bareTurn("c", [1, 2, 3], [4])).evidence.checkpoint_call_id).toBe(delivered);
    }
  });

  it("C7.54: a partial answer of a client that left is recorded and never extended", () => {
    const chat = new Chat();
    chat.ask([user("go")], { role: "assistant", content: "part" }, { checkpointable: false });
    expect(chat.find([user("go"), { role: "assistant", content: "part" }, user("on")])).toMatchObject({
      kind: "fallback",
    });
  });
});

describe("C11 volatile text", () => {
  it("C11.76: a billing header that changes is honest drift, and its cost has a name", () => {
    const chat = new Chat();
    const billed = (version: string): Message =>
      system(`x-anthropic-billing-header: cc_version=2.1.332.${version}; be brief`);
    chat.ask([billed("aaa"), user("go")], calls("a"), { harness: "claude" });
    const next = [billed("bbb"), user("go"), calls("a"), result("a", "out")];
    expect(chat.ask(next, calls("b"), { harness: "claude" })).toMatchObject({
      kind: "new_segment",
      evidence: { cause: "volatile_text", cause_detail: "message 0 (system): billing_version" },
    });
    expect(chat.find(next, "claude")).toMatchObject({ kind: "fallback", reason: "content_changed" });
  });
});
