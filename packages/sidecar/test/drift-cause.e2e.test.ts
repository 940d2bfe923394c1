import { describe, expect, it } from "vitest";
import { postChat, type Started, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });

const TOOLS = [
  {
    type: "function",
    function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } },
  },
];
const call = (json: string): string => `<tool_call>\n${json}\n</tool_call>`;
const PLAIN = '{"name": "bash", "arguments": {"command": "ls"}}';
const SAMPLED: Record<string, { raw: string; split?: string }> = {
  compact: { raw: call('{"name":"bash","arguments":{"command":"ls"}}') },
  "compact behind text": { raw: `Listing.${call('{"name": "bash", "arguments": {"command":"ls"}}')}` },
  "oddly spaced": { raw: call('{"name": "bash", "arguments": {"command":  "ls"}}') },
  "own tokens": { raw: call(PLAIN), split: "characters" },
  "own tokens behind text": { raw: `Listing the files.${call(PLAIN)}`, split: "bytes" },
  "own tokens in text": { raw: "Listing the files again.", split: "characters" },
};
const RULES = Object.entries(SAMPLED).map(([name, reply]) => ({ match: { lastContains: `[${name}]` }, reply }));

/** Two calls: the second repeats the reply to the letter, with its result and what else follows. Gives the cause of the second. */
async function causeOf(started: Started, name: string, follows: boolean): Promise<string | null> {
  const messages: unknown[] = [user(`[${name}] ${follows}`)];
  const ask = async () => {
    const response = await postChat(started, { messages, tools: TOOLS });
    expect(response.status).toBe(200);
    return ((await response.json()) as { choices: { message: { tool_calls?: { id: string }[] } }[] }).choices[0]!
      .message;
  };
  const reply = await ask();
  messages.push(reply);
  for (const { id } of reply.tool_calls ?? []) messages.push({ role: "tool", tool_call_id: id, content: "a.txt" });
  if (follows || reply.tool_calls === undefined) messages.push(user("and then?"));
  await ask();
  const last = turnsOf(await started.sealed()).at(-1)!;
  return last.record.decision.evidence.cause;
}

const SOURCES = ["engine", "renderer", "engine without texts"] as const;

describe("O.121 a reply that came back to the letter", () => {
  for (const source of SOURCES)
    for (const name of Object.keys(SAMPLED))
      for (const follows of [false, true])
        it(`${name}, ${follows ? "a user message follows" : "nothing follows"}, ${source}`, async () => {
          const engine = await scriptedEngine(RULES);
          const before = await serverBefore(engine, (request, response) => {
            if (request.url !== "/detokenize" || source !== "engine without texts") return false;
            response.writeHead(404).end();
            return true;
          });
          const started = await startTestSidecar(before, source === "renderer" ? { renderer: bundle.dir } : {});
          const cause = await causeOf(started, name, follows);
          expect(cause).toBe(name.startsWith("own") ? "retokenised" : "tool_arguments_reserialised");
          const asked = before.requests.filter((request) => request.url === "/detokenize").length;
          expect(asked).toBe({ engine: 2, renderer: 0, "engine without texts": 2 }[source]);
        });
});
