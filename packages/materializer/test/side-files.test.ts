import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mappedOf, parseCsv, parseRows, RowIndex, readRows } from "../src/side-files.js";
import { temporaryDirectory } from "./temporary.js";

describe("side files", () => {
  it("read the same rows from CSV, JSONL, a JSON list and a JSON object by trial", () => {
    const expected = [
      { trial_id: "a", reward: 0.5 },
      { trial_id: "b", reward: null },
    ];
    const rows = (text: string, file: string) =>
      parseRows(text, file).map((row) => Object.fromEntries([...row].sort()));
    const sorted = expected.map((row) => Object.fromEntries(Object.entries(row).sort()));
    expect(rows("trial_id,reward\na,0.5\nb,\n", "r.csv")).toEqual(sorted);
    expect(rows('{"trial_id":"a","reward":0.5}\n\n{"trial_id":"b","reward":null}', "r.jsonl")).toEqual(sorted);
    expect(rows(JSON.stringify(expected), "r.json")).toEqual(sorted);
    expect(rows('{"a": 0.5, "b": {"reward": null}}', "r.json")).toEqual(sorted);
  });

  it("keep ids as text and read numbers and booleans elsewhere", () => {
    const [row] = parseRows('trial_id,attempt,ok,note\n007,2,true,"a, ""b""\nc"\n', "r.csv");
    expect(Object.fromEntries(row!)).toEqual({ trial_id: "007", attempt: 2, ok: true, note: 'a, "b"\nc' });
    expect(mappedOf(row!)).toMatchObject({ trial_id: "007", attempt: 2, run_id: null });
    expect(Object.fromEntries(mappedOf(row!).scores)).toEqual({ ok: true, note: 'a, "b"\nc' });
  });

  it("refuse broken input with the file and the place", () => {
    expect(() => parseRows("trial_id,reward\na\n", "r.csv")).toThrow(/r.csv: row 2 has 1 columns/);
    expect(() => parseRows('{"a"', "r.jsonl")).toThrow(/r.jsonl:1: not valid JSON/);
    expect(() => parseRows("[1]", "r.json")).toThrow(/r.json\[0\]: an object is needed/);
    expect(() => parseCsv('a,"b')).toThrow(/quote/);
    expect(() => new RowIndex(parseRows("reward\n1\n", "r.csv"), "r.csv")).toThrow(/every row needs one of/);
    expect(() => readRows("/nonexistent.csv")).toThrow(/does not exist/);
  });

  it("read from disk and tell which rows named nothing", () => {
    const file = join(temporaryDirectory(), "r.csv");
    writeFileSync(file, "trial_id,reward\r\na,1\r\nz,0\r\n");
    const index = new RowIndex(readRows(file), file);
    expect(index.find({ trajectory_id: [], trial_id: "a", run_id: "a", path: [] })).toHaveLength(1);
    expect(index.unmatched()).toEqual(["trial_id=z"]);
  });
});
