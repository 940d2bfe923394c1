import { describe, expect, it } from "vitest";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { Collector } from "../../src/sample/sampled.js";
import { namedVersion, withNamedVersions } from "../../src/sample/weight-version.js";

const piece = (ids: number[], version: unknown) =>
  readEngineChunk({
    prompt_token_ids: [1],
    choices: [{ index: 0, token_ids: ids, logprobs: { token_logprobs: ids.map(() => -1) } }],
    ...(version === undefined ? {} : { weight_version: version }),
  });

describe("a name for the weights that is none (O.106)", () => {
  it.each(["default", "Default", " default ", "unknown", "none", "None", "null", "undefined", "n/a", "-", ""])(
    "%j does not stand in for what the user says, nor for nothing",
    (word) => {
      expect(namedVersion(word, "step-3")).toBe("step-3");
      expect(namedVersion(word, null)).toBe(word.trim() === "" ? null : word);
      const chunk = { ...piece([5], word), versions: [{ version: word, start: 0, end: 1 }] };
      expect(withNamedVersions(chunk, "step-3")).toMatchObject({
        version: "step-3",
        versions: [{ version: "step-3", start: 0, end: 1 }],
      });
    },
  );

  it.each(["step-7", "120", "policy/default-3", "0"])("%j is one, and holds against the user's", (word) => {
    expect(namedVersion(word, "step-3")).toBe(word);
  });

  it("a number is a name; null is none", () => {
    expect(piece([5], 120).version).toBe("120");
    expect(piece([5], null).version).toBeNull();
  });
});

describe("ids whose weights are not exactly known (O.106)", () => {
  const versions = (before: string | null, ...pieces: [number[], unknown][]) => {
    const collector = new Collector(null, false, before);
    for (const [ids, version] of pieces) collector.add(piece(ids, version));
    return collector.result().versions.map(({ version, start, end }) => `${version} ${start}-${end}`);
  };

  it("a whole reply under a new label may have begun under the one before", () => {
    expect(versions("120", [[5, 6, 7], "125"])).toEqual(["120..125 0-3"]);
    expect(versions("125", [[5, 6, 7], "125"])).toEqual(["125 0-3"]);
    expect(versions(null, [[5, 6, 7], "125"])).toEqual(["125 0-3"]);
  });

  it("of a stream only the piece that brings another label is unsure", () => {
    expect(versions("120", [[5], "121"], [[6, 7], "121"], [[8, 9], "125"], [[10], "125"])).toEqual([
      "120..121 0-1",
      "121 1-3",
      "121..125 3-5",
      "125 5-6",
    ]);
  });

  it("a label that comes with the end alone is that of the whole reply", () => {
    expect(versions("120", [[5, 6], undefined], [[7], undefined], [[], "125"])).toEqual(["120..125 0-3"]);
    expect(versions("125", [[5, 6], undefined], [[], "125"])).toEqual(["125 0-2"]);
  });

  it("a label that changes behind the last id changes nothing", () => {
    expect(versions("120", [[5, 6], "120"], [[], "125"])).toEqual(["120 0-2"]);
  });

  it("a reply that goes on behind an abort begins under what the engine told before", () => {
    const collector = new Collector(null, false, "120");
    collector.add(piece([5, 6], "120"));
    collector.resume("120", null);
    collector.add(readEngineChunk({ choices: [{ index: 0, token_ids: [7, 8] }], weight_version: "125" }));
    expect(collector.result().versions).toEqual([
      { version: "120", start: 0, end: 2 },
      { version: "120..125", start: 2, end: 4 },
    ]);
  });
});
