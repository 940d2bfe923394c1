/** What the engine is told and asked of its prefix cache, and what of it is on record. Numbers are those of docs/bug-table.md. */
import { describe, expect, it } from "vitest";
import { postChat, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const RULES = [
  { match: { lastContains: "again" }, reply: { content: "four five six" } },
  { match: { contains: "hello" }, reply: { content: "one two three" } },
];
const FIRST = { messages: [user("hello")] };
const SECOND = { messages: [user("hello"), { role: "assistant", content: "one two three" }, user("again")] };
const HINTS = ["x-session-id", "x-smg-routing-key", "x-session-affinity", "x-tito-expected-prefix"];
const bundle = useBundle({ certified: false });

async function start(options = {}) {
  const engine = await scriptedEngine(RULES, { promptTokensDetails: true });
  const watched = await serverBefore(engine, () => false);
  const started = await startTestSidecar(watched, options);
  const own = watched.requests.length;
  return { ...started, calls: () => watched.requests.slice(own) };
}

describe("the tokenize route (C9.70)", () => {
  it("is not asked, unless a context limit of ours is", async () => {
    const free = await start();
    const limited = await start({ maxContextTokens: 500 });
    for (const started of [free, limited])
      for (const body of [FIRST, SECOND]) expect((await postChat(started, body)).status).toBe(200);
    const asked = (started: { calls(): { url?: string | undefined }[] }) =>
      started.calls().filter(({ url }) => url === "/tokenize").length;
    expect([asked(free), asked(limited)]).toEqual([0, 2]);
  });
});

describe("the expected prefix (C11.79)", () => {
  it.each([
    ["engine source", () => ({})],
    ["renderer source", () => ({ renderer: bundle.dir })],
  ])("goes to the router with every call, beside what keeps its calls together (%s)", async (_name, options) => {
    const started = await start(options());
    const sub = { "user-agent": "opencode/1", "x-session-id": "ses_2", "x-parent-session-id": "ses_1" };
    for (const body of [FIRST, SECOND]) await (await postChat(started, body)).text();
    await (await postChat(started, { messages: [user("hello from below")] }, sub)).text();
    const sampling = started.calls().filter(({ method, url }) => method === "POST" && url !== "/tokenize");
    const turns = turnsOf(await started.sealed());
    const line = turns[0]!.promptIds.length + turns[0]!.sampledIds.length;
    expect(sampling.slice(0, 2).map(({ headers }) => HINTS.slice(0, 3).map((name) => headers[name]))).toEqual(
      [0, 1].map(() => ["t1", "t1", "t1"]),
    );
    expect(sampling[1]!.headers["x-tito-expected-prefix"]).toBe(String(line));
    expect(sampling[2]!.headers["x-session-id"]).toBe("t1.ses_2");
  });

  it("stays inside where the user wants it so", async () => {
    const started = await start({ routerHints: false });
    await (await postChat(started, FIRST)).text();
    for (const { headers } of started.calls()) for (const name of HINTS) expect(headers[name]).toBeUndefined();
  });
});
