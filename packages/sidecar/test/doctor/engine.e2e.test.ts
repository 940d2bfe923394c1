import { expect, it } from "vitest";
import { diagnose } from "../../src/index.js";
import { scriptedEngine } from "../harness.js";
import { temporaryDir } from "../temporary.js";

it("an engine that gives ids is said to, and one that does not serve the model is named before the first call", async () => {
  const engine = await scriptedEngine([{ reply: { content: "hello" } }]);
  const look = async (model: string | null) => {
    const all = await diagnose({ out: temporaryDir(), upstream: engine.url, model });
    return all.find((one) => one.check === "engine")!;
  };
  expect(await look(null)).toMatchObject({ level: "ok" });
  expect(await look("policy")).toMatchObject({ level: "ok", message: expect.stringContaining("processed log prob") });
  expect(await look("gpt-9")).toMatchObject({ level: "failure", message: expect.stringContaining("gpt-9") });
});
