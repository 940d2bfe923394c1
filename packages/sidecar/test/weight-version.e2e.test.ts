/** Which weights sampled a turn, where the engine has a factory value for a name, or new weights come during a call (O.106). */
import { describe, expect, it } from "vitest";
import { engineSpeaking } from "./engine-shapes.js";
import { engineTest, postChat, scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";
import { useBundle } from "./renderer-bundle.js";

const bundle = useBundle({ certified: false });
const RULES = [{ match: { lastContains: "hello" }, reply: { content: "one two three" } }];
const HELLO = { messages: [user("hello")] };

/** The engine, whose information route answers with one version after the other, the last one for ever. */
async function telling(engine: { url: string }, path: string, versions: readonly unknown[]) {
  let asked = 0;
  return serverBefore(engine, (request, response) => {
    if (request.url !== path) return false;
    // The start-up probe gets the first one too.
    const weight_version = versions[Math.min(Math.max(0, asked++ - 1), versions.length - 1)];
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ weight_version }));
    return true;
  });
}

async function versionsOf(engine: { url: string }, options = {}, stream = false): Promise<string[]> {
  const started = await startTestSidecar(engine, options);
  const response = await postChat(started, { ...HELLO, stream });
  expect(response.status).toBe(200);
  await response.text();
  const [turn] = turnsOf(await started.sealed());
  const { weight_versions, sampled_ids } = turn!.record;
  expect(weight_versions.at(-1)!.end).toBe(sampled_ids.length);
  return weight_versions.map(({ version }) => version);
}

describe.each([{}, { bundle: true }])("a factory value in place of a version (%j)", (source) => {
  const options = () => ("bundle" in source ? { renderer: bundle.dir } : {});

  it.each(["default", "unknown", "", null])("%j does not overrule --weight-version (O.106)", async (word) => {
    const front = await telling(await scriptedEngine(RULES), "/weight_info", [word]);
    expect(await versionsOf(front, { ...options(), weightVersion: "step-3" })).toEqual(["step-3"]);
  });

  it("a version that the engine names does (O.106)", async () => {
    const engine = await scriptedEngine(RULES);
    await engineTest(engine, "weight_version", { version: "step-9" });
    expect(await versionsOf(engine, { ...options(), weightVersion: "step-3" })).toEqual(["step-9"]);
  });
});

it.each([
  ["default", "default"],
  ["", "unknown"],
])("%j without --weight-version is recorded as %j (O.106)", async (word, recorded) => {
  const front = await telling(await scriptedEngine(RULES), "/weight_info", [word]);
  expect(await versionsOf(front)).toEqual([recorded]);
});

it.each([
  [["120", "125"], {}, "120..125"],
  [[120, 125], {}, "120..125"],
  [["default", "125"], { weightVersion: "120" }, "120..125"],
  [["default", "125"], {}, "default..125"],
  [["125", "125"], {}, "125"],
])("a call that began and ended under %j (%j) is recorded as %s (O.106)", async (versions, options, recorded) => {
  const front = await telling(await scriptedEngine(RULES), "/weight_info", versions);
  expect(await versionsOf(front, options)).toEqual([recorded]);
});

describe("SGLang's replies, which are labelled when they are sent", () => {
  const began = async (version: string) =>
    telling(await engineSpeaking("sglang", await scriptedEngine(RULES)), "/model_info", [version]);

  it.each([false, true])(
    "may be of the version before, as far as the first piece goes (stream: %s) (O.106)",
    async (stream) => {
      const options = { renderer: bundle.dir, engine: "sglang" };
      expect(await versionsOf(await began("step-6"), options, stream)).toEqual(["step-6..step-7", "step-7"]);
      expect(await versionsOf(await began("step-7"), options, stream)).toEqual(["step-7"]);
    },
  );
});
