/** Answers of engines that give no ids to calls, or give them twice: what the harness gets has ids, and its next request is read (O.115). */
import { describe, expect, it } from "vitest";
import { postChat, readEvents, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";

interface Call {
  index?: number;
  id?: string | null;
  type?: string;
  function: { name?: string; arguments: string };
}

const RULES = [
  {
    match: { lastContains: "go" },
    reply: {
      tool_calls: [
        { name: "f", arguments: '{"a": 1}' },
        { name: "g", arguments: '{"b": 2}' },
      ],
    },
  },
  { match: {}, reply: { content: "Good day." } },
];
const TOOLS = ["f", "g"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));

/** How an engine spoils the ids of its calls. */
const SPOILED: Record<string, (call: Call) => void> = {
  null: (call) => {
    call.id = null;
  },
  absent: (call) => {
    delete call.id;
    delete call.type;
  },
  empty: (call) => {
    call.id = "";
  },
  "the same": (call) => {
    if (call.id !== undefined && call.id !== null) call.id = "call_0";
  },
};

/** The embedded engine, whose replies say of calls what `spoil` makes of them. */
async function spoiling(spoil: (call: Call) => void) {
  const engine = await scriptedEngine(RULES);
  return serverBefore(engine, (request, response) => {
    if (request.url !== "/v1/chat/completions" || request.headers["x-tito-probe"] !== undefined) return false;
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", async () => {
      const answer = await fetch(`${engine.url}${request.url}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: Buffer.concat(pieces),
      });
      const spoiled = (json: string): string => {
        const chunk = JSON.parse(json) as {
          choices?: { delta?: { tool_calls?: Call[] }; message?: { tool_calls?: Call[] } }[];
        };
        for (const choice of chunk.choices ?? [])
          for (const call of (choice.delta ?? choice.message)?.tool_calls ?? []) spoil(call);
        return JSON.stringify(chunk);
      };
      const text = await answer.text();
      const type = answer.headers.get("content-type") ?? "";
      const out = type.includes("event-stream")
        ? text.replace(/^data: (\{.*)$/gm, (_line, json: string) => `data: ${spoiled(json)}`)
        : spoiled(text);
      response.writeHead(answer.status, { "content-type": type }).end(out);
    });
    return true;
  });
}

/** The calls as an OpenAI client adds them up. */
async function callsOf(response: Response, stream: boolean): Promise<Call[]> {
  expect(response.status).toBe(200);
  if (!stream)
    return ((await response.json()) as { choices: { message: { tool_calls: Call[] } }[] }).choices[0]!.message
      .tool_calls;
  const calls: Call[] = [];
  for await (const event of readEvents(response)) {
    if (!event.startsWith("data: {")) continue;
    const { choices } = JSON.parse(event.slice(6)) as { choices: { delta?: { tool_calls?: Call[] } }[] };
    for (const part of choices[0]?.delta?.tool_calls ?? []) {
      const known = calls[part.index!];
      if (known === undefined)
        calls[part.index!] = { ...part, function: { ...part.function, arguments: part.function.arguments ?? "" } };
      else known.function.arguments += part.function.arguments ?? "";
      if (known !== undefined && part.id) expect(part.id).toBe(known.id);
    }
  }
  return calls;
}

const cases = Object.keys(SPOILED).flatMap((how) => [true, false].map((stream) => [how, stream] as const));

describe("ids of calls", () => {
  it.each(cases)(
    "that an engine gives %s (streamed: %s) are the sidecar's, and what the harness sends back is read",
    async (how, stream) => {
      const started = await startTestSidecar(await spoiling(SPOILED[how]!));
      const first = { messages: [user("go")], tools: TOOLS, stream };
      const calls = await callsOf(await postChat(started, first), stream);
      expect(calls.map((call) => call.function)).toEqual([
        { name: "f", arguments: '{"a": 1}' },
        { name: "g", arguments: '{"b": 2}' },
      ]);
      expect(calls.every((call) => call.type === "function")).toBe(true);
      const ids = calls.map((call) => call.id);
      expect(new Set(ids).size).toBe(2);
      for (const id of ids) expect(id).toMatch(/^call_/);

      const results = ids.map((id, index) => ({ role: "tool", tool_call_id: id, content: `r${index}` }));
      const history = [
        user("go"),
        { role: "assistant", content: null, tool_calls: calls.map(({ index, ...call }) => call) },
        ...results,
      ];
      const next = await postChat(started, { messages: history, tools: TOOLS, stream: false });
      expect(next.status).toBe(200);
      // A harness that drops what it got is read as well, and so is the engine's next prompt.
      for (const none of [null, ""]) {
        const without = JSON.parse(
          JSON.stringify(history).replaceAll(/"(id|tool_call_id)":"[^"]*"/g, `"$1":${JSON.stringify(none)}`),
        ) as object[];
        expect((await postChat(started, { messages: without, tools: TOOLS, stream })).status).toBe(200);
      }
      const [turn] = turnsOf(await started.sealed());
      expect(turn!.record.message.tool_calls!.map((call) => call.id)).toEqual(ids);
    },
  );

  it("are the same in a replay of the answer, in whatever shape it is asked for", async () => {
    const started = await startTestSidecar(await spoiling(SPOILED.null!));
    const body = { messages: [user("go")], tools: TOOLS };
    const headers = { "idempotency-key": "k" };
    const gone = new AbortController();
    const lost = await postChat(started, { ...body, stream: true }, headers, gone.signal);
    let seen: string | undefined;
    for await (const event of readEvents(lost)) {
      seen = /"id":"(call_[^"]+)"/.exec(event)?.[1];
      if (seen !== undefined) break;
    }
    gone.abort();
    await started.logged("orphaned").catch(() => undefined);
    const ids = (await callsOf(await postChat(started, { ...body, stream: false }, headers), false)).map(
      (call) => call.id,
    );
    expect(ids[0]).toBe(seen);
  });

  it.each(["responses", "messages"] as const)("reach a harness of %s too", async (dialect) => {
    for (const how of Object.keys(SPOILED)) {
      const started = await startTestSidecar(await spoiling(SPOILED[how]!));
      const [path, request] =
        dialect === "responses"
          ? ["responses", { input: "go", tools: TOOLS.map(({ function: tool }) => ({ type: "function", ...tool })) }]
          : [
              "messages",
              {
                max_tokens: 99,
                messages: [user("go")],
                tools: TOOLS.map(({ function: { name, parameters } }) => ({ name, input_schema: parameters })),
              },
            ];
      for (const stream of [true, false]) {
        const response = await fetch(`${started.url}/${path}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
          body: JSON.stringify({ model: "policy", stream, ...(request as object) }),
        });
        const text = await response.text();
        const ids = new Set(
          [
            ...text.matchAll(dialect === "responses" ? /"call_id":"([^"]*)"/g : /"type":"tool_use","id":"([^"]*)"/g),
          ].map(([, id]) => id),
        );
        expect(ids.size).toBe(2);
        for (const id of ids) expect(id).toMatch(/^call_/);
      }
    }
  });
});
