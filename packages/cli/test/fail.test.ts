import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { reportFailure } from "../src/fail.js";
import { printable, renderTable } from "../src/table.js";

const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
afterEach(() => said.mockClear());

const thrownBy = (action: () => unknown): unknown => {
  try {
    return action();
  } catch (error) {
    return error;
  }
};

it.each<[string, () => unknown, RegExp]>([
  ["a file that is not there", () => readFileSync("/nonexistent/x"), /^tito: ENOENT: .*'\/nonexistent\/x'$/],
  [
    "a directory where a file is needed",
    () => readFileSync("/"),
    /^tito: EISDIR: .*\n {2}name a file, not a directory$/,
  ],
  ["a file where a directory is needed", () => readdirSync("/dev/null"), /^tito: ENOTDIR: .*'\/dev\/null'$/],
  ["a full disk", () => writeFileSync("/dev/full", "x"), /^tito: ENOSPC: .*\n {2}make room and run it again$/],
])("%s is told in the system's words, with exit code 74 and no stack", (_name, action, message) => {
  expect(reportFailure(thrownBy(action), false)).toBe(74);
  expect(said.mock.calls.join("\n")).toMatch(message);
});

it("a bug keeps its stack and its own exit code", () => {
  expect(reportFailure(new TypeError("x is not a function"), false)).toBe(70);
  expect(said.mock.calls.join("\n")).toMatch(/internal error: TypeError: x is not a function\n {4}at /);
});

it("names from outside cannot steer the terminal", () => {
  expect(printable("a\u001b[31m\nb\u0000é😀")).toBe("a\\u001b[31m\\u000ab\\u0000é😀");
  expect(renderTable([{ title: "run" }], [["x\ny"]]).split("\n")).toHaveLength(2);
});
