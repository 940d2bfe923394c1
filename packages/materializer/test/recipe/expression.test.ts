import { describe, expect, it } from "vitest";
import { compileExpression, type Value } from "../../src/recipe/expression.js";

const scope = {
  lookup: (name: string): Value | undefined =>
    new Map<string, Value>([
      ["reward", 1],
      ["tests", 7],
      ["none", null],
      ["name", "a"],
      ["run.turns", 3],
    ]).get(name),
  score: (name: string): Value => (name === "tests-passed" ? 9 : null),
  exists: (pattern: string) => pattern === "x/*.txt",
};
const value = (source: string) => compileExpression(source, "test")(scope);

describe("expressions", () => {
  it("calculate with the usual order of operations", () => {
    expect(value("1 + 2 * 3 - 4 / 2")).toBe(5);
    expect(value("(1 + 2) * 3")).toBe(9);
    expect(value("-2 - -3")).toBe(1);
    expect(value("10 - 3 - 2")).toBe(5);
    expect(value("7 % 4 + .5e1")).toBe(8);
  });

  it("compare, choose and call functions", () => {
    expect(value("tests >= 7 and not (reward < 1) ? 'yes' : 'no'")).toBe("yes");
    expect(value("clip(tests, 0, 5) + min(1, 2, 3) + max(4, 2)")).toBe(10);
    expect(value("score('tests-passed')")).toBe(9);
    expect(value("exists('x/*.txt') && !exists('y')")).toBe(true);
    expect(value("name + '/' + run.turns")).toBe("a/3");
  });

  it("let an unknown value stay unknown", () => {
    expect(value("none + 1")).toBeNull();
    expect(value("missing * 2")).toBeNull();
    expect(value("1 / 0")).toBeNull();
    expect(value("coalesce(none, 4)")).toBe(4);
    expect(value("isnull(missing)")).toBe(true);
    expect(value("none > 0 ? 1 : 2")).toBe(2);
    expect(value("none == null")).toBe(true);
  });

  it("refuse what they cannot read, with the place", () => {
    for (const source of ["1 +", "(1", "1 2", "foo(1)", "min()", "a[0]", "constructor('x')", "`x`", "x = 1", "1;2"]) {
      expect(() => compileExpression(source, "reward"), source).toThrow(/^reward: /);
    }
    expect(() => compileExpression("(".repeat(500), "reward")).toThrow(/too deeply nested/);
    expect(value("constructor")).toBeNull();
    expect(value("__proto__")).toBeNull();
  });
});
