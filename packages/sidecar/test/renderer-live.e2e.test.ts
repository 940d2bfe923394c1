/** The renderer path while an answer is under way: deltas come live, and a thread that ends is started again unseen. */
import type { Worker } from "node:worker_threads";
import { differencesToEngine } from "@tito/testkit";
import { expect, it, onTestFinished } from "vitest";
import {
  engineLog,
  engineTest,
  postChat,
  readEvents,
  scriptedEngine,
  serverBefore,
  startTestSidecar,
  turnsOf,
  user,
} from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three four five six seven" } }];
const STREAM = { messages: [user("hello")], stream: true };
const bundle = useBundle({ certified: false });

/** A sidecar with a renderer, on an engine whose token route does not stream, so that ids go to its completions route. */
async function start() {
  const engine = await scriptedEngine(RULES);
  const streaming = await serverBefore(engine, (request, response) => {
    if (request.url !== "/inference/v1/generate") return false;
    response.writeHead(404).end();
    return true;
  });
  const threads: Worker[] = [];
  const add = (worker: Worker): void => void threads.push(worker);
  process.on("worker", add);
  onTestFinished(() => void process.off("worker", add));
  const started = await startTestSidecar(streaming, { renderer: bundle.dir });
  await engineTest(engine, "faults", { fault: { kind: "hang_after", tokens: 5 } });
  return { engine, started, threads };
}

const untilHeld = (engine: { url: string }) => engineTest(engine, "wait", { gauge: "hanging", atLeast: 1 });
const release = (engine: { url: string }) => engineTest(engine, "release", {});

it("deltas arrive while the engine is held in mid-answer (peers C8.56)", async () => {
  const { engine, started } = await start();
  const events = readEvents(await postChat(started, STREAM));
  const seen: string[] = [];
  while (!seen.join("").includes('"content":"o')) seen.push((await events.next()).value as string);
  await untilHeld(engine);
  expect(seen.join("")).not.toMatch(/"finish_reason":"|DONE/);
  await release(engine);
  for await (const event of events) seen.push(event);
  expect(seen.at(-1)).toBe("data: [DONE]");
});

it("a thread that ends in mid-answer is started again: the answer, its ids and later calls are whole", async () => {
  const { engine, started, threads } = await start();
  const events = readEvents(await postChat(started, STREAM));
  const seen: string[] = [];
  while (!seen.join("").includes('"content":"o')) seen.push((await events.next()).value as string);
  await untilHeld(engine);
  await threads.at(-1)!.terminate();
  await release(engine);
  for await (const event of events) seen.push(event);
  expect(seen.at(-1)).toBe("data: [DONE]");
  await started.logged("renderer_restarted");
  await threads.at(-1)!.terminate();
  const later = (await (await postChat(started, { ...STREAM, stream: false })).json()) as {
    choices: { message: { content: string } }[];
  };
  expect(later.choices[0]!.message.content).toBe("one two three four five six seven");
  const log = await started.sealed();
  expect(turnsOf(log).map(({ record }) => [record.message.content, record.defects])).toEqual([
    ["one two three four five six seven", []],
    ["one two three four five six seven", []],
  ]);
  expect(differencesToEngine(log, await engineLog(engine))).toEqual([]);
});
