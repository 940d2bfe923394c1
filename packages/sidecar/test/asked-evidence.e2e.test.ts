/** Log probabilities and ids that a harness asks for itself: it gets them, or is told that it can not. They are never left out in silence. */
import { describe, expect, it } from "vitest";
import { engineTest, postChat, readEvents, scriptedEngine, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const HELLO = { messages: [user("hello")] };
const ASKED = [{ logprobs: true }, { return_token_ids: true }];
const SHOWN = /"logprobs":\{|"token_ids":\[/;

describe("evidence that a harness asks for", () => {
  const bundle = useBundle({ certified: false });

  it("is in the engine's own answer, streamed and not", async () => {
    const started = await startTestSidecar(await scriptedEngine(RULES));
    for (const asked of ASKED) {
      for (const stream of [false, true]) {
        expect(await (await postChat(started, { ...HELLO, ...asked, stream })).text()).toMatch(SHOWN);
      }
    }
  });

  it("is refused by name where the sidecar writes the answer, before a token is spent (O.10)", async () => {
    const started = await startTestSidecar(await scriptedEngine(RULES), { renderer: bundle.dir });
    for (const asked of ASKED) {
      for (const stream of [false, true]) {
        const response = await postChat(started, { ...HELLO, ...asked, stream });
        expect(response.status).toBe(400);
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        expect(error).toMatchObject({ code: "unsupported", message: expect.stringContaining(Object.keys(asked)[0]!) });
      }
    }
    expect((await postChat(started, { ...HELLO, logprobs: false, return_token_ids: null })).status).toBe(200);
    expect(turnsOf(await started.sealed())).toHaveLength(1);
  });

  it("is in the answer to a retry too: one that is kept without it is not given again (O.10)", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    for (const [index, asked] of ASKED.entries()) {
      await engineTest(engine, "faults", {
        on: { path: "/v1/chat/completions" },
        fault: { kind: "hang_after", tokens: 3 },
      });
      const gone = new AbortController();
      const first = await postChat(started, { ...HELLO, ...asked, stream: true }, {}, gone.signal);
      for await (const _ of readEvents(first)) break;
      gone.abort();
      await started.logged("orphaned", index + 1);
      await engineTest(engine, "release", {});
      await started.logged("failed", index + 1);
      expect(await (await postChat(started, { ...HELLO, ...asked })).text()).toMatch(SHOWN);
    }
    const log = await started.sealed();
    expect(log.replays).toEqual([]);
    expect(turnsOf(log).map(({ record }) => record.decision.reason)).toEqual([
      "first_turn",
      "retry",
      "identical_prompt",
      "retry",
    ]);
  });
});
