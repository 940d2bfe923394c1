import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeBundle } from "@tito/renderer";
import { differencesToEngine } from "@tito/testkit";
import { describe, expect, it } from "vitest";
import {
  engineLog,
  postChat,
  type ReadTurn,
  type Started,
  scriptedEngine,
  startTestSidecar,
  temporaryDir,
  turnsOf,
  user,
} from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: true });

const TOOLS = [
  {
    type: "function",
    function: {
      name: "bash",
      description: "Runs a command.",
      parameters: { type: "object", properties: { command: { type: "string" }, timeout: { type: "number" } } },
    },
  },
];
/** Calls whose JSON no library spells as the policy did, sampled in other tokens than the tokenizer's, behind reasoning. */
const step = (n: number) => ({
  match: { lastContains: `step ${n}.` },
  reply: {
    raw: `<think>Now number ${n}.</think>Going on.<tool_call>\n{"name": "bash", "arguments": {"timeout":${n}.0,  "command": "echo ${n}"}}\n</tool_call>`,
    split: "characters",
  },
});
const STEPS = 4;
const RULES = [
  ...Array.from({ length: STEPS }, (_, n) => step(n)),
  { match: { lastContains: "finished" }, reply: { content: "All is done." } },
  { match: { lastContains: "hello" }, reply: { content: "Good day." } },
  { match: { lastContains: "thanks" }, reply: { content: "You are welcome." } },
];

interface Reply {
  role: "assistant";
  content: string | null;
  reasoning_content?: string;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
}

async function ask(started: Started, messages: unknown[], fields: Record<string, unknown> = {}): Promise<Reply> {
  const response = await postChat(started, { messages, tools: TOOLS, ...fields });
  expect(response.status).toBe(200);
  return ((await response.json()) as { choices: { message: Reply }[] }).choices[0]!.message;
}

/** A harness that writes its history anew: arguments through its own JSON library, reasoning left out, null content as text. */
function rewritten(reply: Reply): Record<string, unknown> {
  return {
    role: "assistant",
    content: reply.content ?? "",
    tool_calls: reply.tool_calls?.map((call) => ({
      ...call,
      function: { name: call.function.name, arguments: JSON.stringify(JSON.parse(call.function.arguments)) },
    })),
  };
}

async function loop(started: Started): Promise<void> {
  const messages: unknown[] = [user("step 0.")];
  for (let n = 1; n <= STEPS; n++) {
    const reply = await ask(started, messages);
    const result = n < STEPS ? `step ${n}.` : "finished";
    messages.push(rewritten(reply), { role: "tool", tool_call_id: reply.tool_calls![0]!.id, content: result });
  }
  await ask(started, messages);
}

const start = (engine: { url: string }, options = {}) =>
  startTestSidecar(engine, { renderer: bundle.dir, promptMode: "incremental", shadowRender: 0, ...options });
const fallbackOf = ({ record }: ReadTurn) => record.decision.evidence.fallback;

describe("a harness that re-serialises arguments and drops reasoning", () => {
  it("keeps one segment in incremental mode where full history opens one at every turn", async () => {
    const engines = [await scriptedEngine(RULES), await scriptedEngine(RULES)] as const;
    const full = await startTestSidecar(engines[0], { renderer: bundle.dir });
    await loop(full);
    const incremental = await start(engines[1], { shadowRender: 1 });
    await loop(incremental);
    const logs = [await full.sealed(), await incremental.sealed()] as const;
    const [split, whole] = logs.map(turnsOf);
    expect(split!.map(({ record }) => record.decision.kind)).toEqual([
      "new_segment",
      ...split!.slice(1).map(() => expect.stringMatching(/branch|new_segment/)),
    ]);
    expect(whole!.map(({ record }) => record.decision.kind)).toEqual([
      "new_segment",
      ...whole!.slice(1).map(() => "append"),
    ]);
    for (const [index, turn] of whole!.slice(1).entries()) {
      const before = whole![index]!;
      const checkpoint = [...before.promptIds, ...before.sampledIds];
      expect(turn.promptIds.slice(0, checkpoint.length)).toEqual(checkpoint);
      expect(turn.record).toMatchObject({ prompt_mode: "incremental", defects: [], junction: { kind: "tool_result" } });
      const seam = [...turn.record.junction!.seam_ids];
      expect([...turn.record.prompt_suffix.slice(0, seam.length)]).toEqual(seam);
      const { shadow } = turn.record.decision.evidence;
      expect(shadow!.match_tokens).toBeLessThan(before.promptIds.length + before.sampledIds.length);
    }
    for (const [index, log] of logs.entries())
      expect(differencesToEngine(log, await engineLog(engines[index]!))).toEqual([]);
  });

  it("goes on from the recovered checkpoint after a crash", async () => {
    const engine = await scriptedEngine(RULES);
    const out = temporaryDir();
    const first = await start(engine, { out });
    const reply = await ask(first, [user("step 0.")]);
    // A process that dies leaves its files as they are: a copy of them, without its lock, is what the next one finds.
    const found = temporaryDir();
    cpSync(out, found, { recursive: true, filter: (path) => !/lock/.test(path.slice(out.length)) });
    const second = await start(engine, { out: found });
    const result = { role: "tool", tool_call_id: reply.tool_calls![0]!.id, content: "step 1." };
    await ask(second, [user("step 0."), rewritten(reply), result]);
    const [before, after] = turnsOf(await second.sealed());
    expect(after!.record).toMatchObject({ prompt_mode: "incremental", decision: { reason: "recovered" } });
    const checkpoint = [...before!.promptIds, ...before!.sampledIds];
    expect(after!.promptIds.slice(0, checkpoint.length)).toEqual(checkpoint);
  });
});

describe("incremental mode builds the full rendering where nothing drifted", () => {
  it("id for id, over user turns and a cut answer", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await start(engine, { shadowRender: 1 });
    const messages: unknown[] = [user("hello")];
    messages.push(await ask(started, messages), user("thanks"));
    messages.push(await ask(started, messages), user("hello"));
    messages.push(await ask(started, messages, { max_tokens: 2 }), user("thanks"));
    await ask(started, messages);
    const turns = turnsOf(await started.sealed());
    expect(turns.map(({ record }) => record.junction?.kind)).toEqual([
      undefined,
      "user_turn",
      "user_turn",
      "user_turn_after_length",
    ]);
    expect(turns.map(({ segment }) => segment)).toEqual([1, 1, 1, 1]);
    for (const { promptIds, record } of turns.slice(1)) {
      expect(record.decision.evidence.shadow).toEqual({
        full_tokens: promptIds.length,
        match_tokens: promptIds.length,
      });
    }
  });
});

describe("what falls back to full history, with its reason and without an error", () => {
  it.each([
    ["content_changed", (reply: Reply) => ({ ...reply, content: "Something else." })],
    [
      "arguments_changed",
      (reply: Reply) => ({
        ...reply,
        tool_calls: [{ ...reply.tool_calls![0]!, function: { name: "bash", arguments: "{}" } }],
      }),
    ],
  ])("%s", async (reason, change) => {
    const engine = await scriptedEngine(RULES);
    const started = await start(engine);
    const reply = await ask(started, [user("step 0.")]);
    const result = { role: "tool", tool_call_id: reply.tool_calls![0]!.id, content: "step 1." };
    await ask(started, [user("step 0."), change(reply), result]);
    const [, turn] = turnsOf(await started.sealed());
    expect(fallbackOf(turn!)).toMatchObject({ reason });
    expect(turn!.record).toMatchObject({
      prompt_mode: "full_history",
      junction: null,
      decision: { kind: "new_segment" },
    });
  });

  it("a history that was never recorded, other tools, arguments to the template", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await start(engine);
    const reply = await ask(started, [user("hello")]);
    const next = [user("hello"), reply, user("thanks")];
    await ask(started, [user("a"), { role: "assistant", content: "b" }, user("hello")]);
    await ask(started, next, { tools: [] });
    await ask(started, next, { chat_template_kwargs: { mood: "good" } });
    const turns = turnsOf(await started.sealed());
    expect(turns.map((turn) => fallbackOf(turn)?.reason)).toEqual([
      undefined,
      "no_checkpoint",
      "tools_changed",
      "template_arguments",
    ]);
  });

  it("a turn that did not parse", async () => {
    const engine = await scriptedEngine([
      { match: { lastContains: "hello" }, reply: { raw: "<tool_call>\n{" } },
      ...RULES,
    ]);
    const started = await start(engine);
    const reply = await ask(started, [user("hello")]);
    await ask(started, [user("hello"), reply, user("thanks")]);
    const [, turn] = turnsOf(await started.sealed());
    expect(fallbackOf(turn!)).toMatchObject({ reason: "turn_malformed" });
  });
});

describe("starting", () => {
  it("is refused without a certificate, or with another bundle's", async () => {
    const engine = await scriptedEngine(RULES);
    const dir = temporaryDir();
    const begin = (certificate: string) => start(engine, { certificate });
    await expect(begin(join(dir, "none.json"))).rejects.toMatchObject({ code: "bundle_invalid" });
    const other = {
      schema: "tito.junction_certificate/v1",
      bundle: "bundle:0",
      renderer_version: "1",
      seed: 1,
      shapes: {},
      refused: [],
    };
    writeFileSync(join(dir, "other.json"), JSON.stringify(other));
    await expect(begin(join(dir, "other.json"))).rejects.toThrow(/it is about bundle:0/);
  });

  it("is refused with a token diff when the engine renders otherwise, unless that is allowed", async () => {
    const engine = await scriptedEngine(RULES);
    const dir = temporaryDir();
    const from = join(import.meta.dirname, "../../../fixtures/policy");
    const template = join(dir, "other.jinja");
    writeFileSync(
      template,
      readFileSync(join(from, "chat_template.jinja"), "utf8").replace("assistant\\n", "assistant\\n\\n"),
    );
    const out = join(dir, "bundle");
    await makeBundle({ from, template, family: "demo", out, date: "2026-11-30" });
    const options = { renderer: out };
    const failed = startTestSidecar(engine, options);
    await expect(failed).rejects.toMatchObject({ code: "render_mismatch" });
    await expect(failed).rejects.toThrow(/probe chat \d: token \d+ differs[\s\S]+bundle +\d+[\s\S]+engine +/);
    const allowed = await startTestSidecar(engine, { ...options, allowRenderMismatch: true });
    expect((await ask(allowed, [user("hello")])).content).toBe("Good day.");
    rmSync(out, { recursive: true });
    await expect(startTestSidecar(engine, options)).rejects.toMatchObject({ code: "bundle_invalid" });
  });
});
