import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mappedOf, RowIndex, type SideFileKind } from "../../src/find/side-files.js";
import { parseCsv, parseRows, readRows } from "../../src/find/side-rows.js";
import { temporaryDirectory } from "../temporary.js";

const rows = (text: string, file: string) =>
  parseRows(text, file).map((row) => Object.fromEntries([...row.cells].sort()));
const open = (kind: SideFileKind, text: string, file = "r.csv") => new RowIndex(parseRows(text, file), file, kind);
const nobody = { trajectory_id: [], run_id: "", path: [] };

describe("side files", () => {
  it("read the same rows from CSV, JSONL, a JSON list and a JSON object by trial", () => {
    const expected = [
      { reward: 0.5, trial_id: "a" },
      { reward: null, trial_id: "b" },
    ];
    expect(rows("trial_id,reward\na,0.5\nb,\n", "r.csv")).toEqual(expected);
    expect(rows('{"trial_id":"a","reward":0.5}\n\n{"trial_id":"b","reward":null}', "r.jsonl")).toEqual(expected);
    expect(rows(JSON.stringify(expected), "r.json")).toEqual(expected);
    expect(rows('{"a": 0.5, "b": {"reward": null}}', "r.json")).toEqual(expected);
    expect(rows('{"trial_id": "a", "reward": 0.5}', "r.json")).toEqual(expected.slice(0, 1));
  });

  it("do not mind what programs put around a value: byte order marks, spaces, NaN, halves of surrogate pairs", () => {
    const expected = [{ reward: 0.5, trial_id: "a" }];
    expect(rows("\uFEFFtrial_id, reward \r\n a , 0.5 \r\n", "r.CSV")).toEqual(expected);
    expect(rows('\uFEFF{"trial_id":"a","reward":0.5}\r\n', "r.ndjson")).toEqual(expected);
    expect(rows('\uFEFF[{"trial_id":"a","reward":0.5}]', "r.json")).toEqual(expected);
    const unknown = [{ reward: null, speed: null, trial_id: "NaN", x: 1 }];
    expect(rows('{"trial_id":"NaN","reward":NaN,"speed":-Infinity,"x":1}', "r.jsonl")).toEqual(unknown);
    expect(rows('{"trial_id":"NaN","reward":1e999,"speed":null,"x":1}', "r.jsonl")).toEqual(unknown);
    expect(rows('{"trial_id":"a\\ud800"}', "r.jsonl")).toEqual([{ trial_id: "a\uFFFD" }]);
  });

  it("keep ids as text and read numbers and booleans elsewhere", () => {
    const [row] = parseRows('trial_id,attempt,ok,note\n007,2,true,"a, ""b""\nc"\n', "r.csv");
    expect(Object.fromEntries(row!.cells)).toEqual({ trial_id: "007", attempt: 2, ok: true, note: 'a, "b"\nc' });
    expect(mappedOf([row!])).toMatchObject({ trial_id: "007", attempt: 2, run_id: null });
    expect(Object.fromEntries(mappedOf([row!]).scores)).toEqual({ ok: true, note: 'a, "b"\nc' });
  });

  it("refuse broken input with the file and the place", () => {
    expect(() => parseRows("trial_id,reward\na\n", "r.csv")).toThrow(/r.csv: row 2 has 1 columns/);
    expect(() => parseRows("trial_id,x,x\n", "r.csv")).toThrow(/r.csv: the header names the column "x" twice/);
    expect(() => parseRows('{"a"', "r.jsonl")).toThrow(/r.jsonl:1: not valid JSON/);
    expect(() => parseRows("[1]", "r.json")).toThrow(/r.json\[0\]: an object is needed/);
    expect(() => parseCsv('a,"b', "r.csv")).toThrow(/r.csv: a quote/);
    expect(() => readRows("/nonexistent.csv")).toThrow(/does not exist/);
    expect(() => readRows(temporaryDirectory())).toThrow(/is not a file/);
  });

  it.each<[SideFileKind, string, RegExp]>([
    ["rewards", "reward\n1\n", /r.csv: row 2: every row needs one of/],
    ["rewards", "trial_id;reward\na;1\n", /every row needs one of/],
    ["rewards", "trial_id,turn,reward\na,0,1\n", /row 2: rewards of single turns/],
    ["rewards", "trial_id,attempt\na,-1\n", /row 2: attempt: a whole number from 0 is needed, not -1/],
    ["rewards", "trial_id,attempt\na,1.5\n", /attempt: .* not 1.5/],
    ["rewards", "trial_id,attempt\na,one\n", /attempt: .* not "one"/],
    ["rewards", "trial_id,attempt\na,20261130101441\n", /attempt: .* not 20261130101441/],
    ["rewards", "trial_id,reward\na,1\nb,1\na,0\n", /row 4: trial_id=a has reward 0 here and 1 in r.csv: row 2/],
    ["exclusions", "trial_id\na\n", /row 2: reason: a text is needed, not nothing/],
    ["exclusions", "trial_id,reason\na,\n", /row 2: reason: a text is needed, not null/],
    ["turn_rewards", "trial_id,turn,reward\na,0,high\n", /row 2: reward: a number is needed, not "high"/],
    ["turn_rewards", "trial_id,turn,reward\na,0,\n", /row 2: reward: a number is needed, not null/],
    ["turn_rewards", "trial_id,turn,score\na,0,1\n", /row 2: reward: a number is needed, not nothing/],
    ["turn_rewards", "trial_id,turn,reward\na,,1\n", /row 2: turn: a whole number from 0 is needed, not null/],
    ["turn_rewards", "trial_id,turn,reward\na,0.5,1\n", /turn: .* not 0.5/],
    ["turn_rewards", "trial_id,turn,reward\na,-1,1\n", /turn: .* not -1/],
    ["turn_rewards", "trial_id,reward\na,1\n", /turn: .* not nothing/],
    ["turn_rewards", "trial_id,turn,reward\na,0,1\na,0,0\n", /row 3: trial_id=a has reward 0 here and 1 in/],
  ])("refuse in %s what has no effect or two meanings: %j", (kind, text, message) => {
    expect(() => open(kind, text)).toThrow(message);
  });

  it("take what says the same twice, several verdicts of a run, and several turns of a run", () => {
    expect(open("rewards", "trial_id,reward,x\na,1,\na,1,2\n").find({ ...nobody, trial_id: ["a"] })).toHaveLength(2);
    expect(open("exclusions", "trial_id,reason\na,x\na,y\n").unmatched()).toEqual(["trial_id=a"]);
    expect(
      open("exclusions", '{"a":"x"}', "r.json")
        .find({ ...nobody, trial_id: ["a"] })[0]!
        .cells.get("reason"),
    ).toBe("x");
    expect(open("turn_rewards", "trial_id,turn,reward\na,0,1\na,1,0\n").unmatched()).toEqual(["trial_id=a"]);
  });

  it("read from disk and tell which rows named nothing, and what no rule can read", () => {
    const file = join(temporaryDirectory(), "r.csv");
    writeFileSync(file, "trial_id,reward\r\na,1\r\nz,0\r\n");
    const index = new RowIndex(readRows(file), file, "rewards");
    expect(index.find({ ...nobody, trial_id: ["a"] })).toHaveLength(1);
    expect(index.unmatched()).toEqual(["trial_id=z"]);
    expect(index.warnings()).toEqual([]);
    expect(open("rewards", "").warnings()).toEqual(["r.csv holds no row"]);
    expect(open("rewards", '{"a":{"reward":{"v":1}}}', "r.json").warnings()).toEqual([
      "r.json: a: reward is a list or an object, which no rule can read; it is left out",
    ]);
  });
});
