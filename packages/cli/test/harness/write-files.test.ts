import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeHarnessFiles } from "../../src/harness/write-files.js";

let root: string;
let home: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tito-harness-"));
  home = join(root, "home");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function codeOf(run: () => void): string {
  try {
    run();
  } catch (error) {
    if (TitoError.is(error)) return error.code;
    throw error;
  }
  return "written";
}

test("files are written below home, readable by their owner only", () => {
  writeHarnessFiles(home, [{ path: ".pi/agent/models.json", content: "{}" }]);
  const path = join(home, ".pi/agent/models.json");
  expect(readFileSync(path, "utf8")).toBe("{}");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(home, ".pi/agent"))).toEqual(["models.json"]);
});

test("our own file is replaced when the endpoint changes", () => {
  writeHarnessFiles(home, [{ path: "c.json", content: "one" }]);
  writeHarnessFiles(home, [{ path: "c.json", content: "two" }]);
  expect(readFileSync(join(home, "c.json"), "utf8")).toBe("two");
});

test("a user's file is kept, and nothing else is written, unless forced", () => {
  mkdirSync(home);
  writeFileSync(join(home, "b.json"), "mine");
  const files = [
    { path: "a.json", content: "a" },
    { path: "b.json", content: "b" },
  ];
  expect(codeOf(() => writeHarnessFiles(home, files))).toBe("already_exists");
  expect(readdirSync(home)).toEqual(["b.json"]);
  expect(readFileSync(join(home, "b.json"), "utf8")).toBe("mine");
  expect(codeOf(() => writeHarnessFiles(home, files, { force: true }))).toBe("written");
  expect(readFileSync(join(home, "b.json"), "utf8")).toBe("b");
});

test("our file that the user changed since is the user's", () => {
  writeHarnessFiles(home, [{ path: "c.json", content: "one" }]);
  writeFileSync(join(home, "c.json"), "one, edited");
  expect(codeOf(() => writeHarnessFiles(home, [{ path: "c.json", content: "two" }]))).toBe("already_exists");
});

test("no path leaves home: not by dots, not absolute, not through a link", () => {
  mkdirSync(home);
  mkdirSync(join(root, "outside"));
  symlinkSync(join(root, "outside"), join(home, "link"));
  writeFileSync(join(root, "target"), "x");
  symlinkSync(join(root, "target"), join(home, "file"));
  for (const path of ["../x", "a/../../x", "/tmp/tito-x", "link/x", "link/deep/x"]) {
    expect(codeOf(() => writeHarnessFiles(home, [{ path, content: "x" }], { force: true }))).toBe("cannot_write");
  }
  expect(codeOf(() => writeHarnessFiles(home, [{ path: "file", content: "y" }], { force: true }))).toBe(
    "already_exists",
  );
  expect(readFileSync(join(root, "target"), "utf8")).toBe("x");
  expect(readdirSync(join(root, "outside"))).toEqual([]);
});
