import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { checkImports, checkManifest, checkRooms } from "../checks/imports.js";
import { checkLinks } from "../checks/links.js";
import { circlesOf } from "../checks/room-graph.js";
import { ALLOWED_ROOMS } from "../checks/room-table.js";
import { checkSeeds, findSeededTests } from "../checks/seeds.js";
import { checkShape } from "../checks/shape.js";
import { runTool } from "../checks/tools.js";
import { checkWords } from "../checks/words.js";

const root = resolve(import.meta.dirname, "../..");
const messages = (findings: { message: string }[]) => findings.map((finding) => finding.message);

describe("import direction", () => {
  it("lets a package import what its row allows", () => {
    const file = { path: "packages/sidecar/src/a.ts", text: 'import { x } from "@tito/format";\nimport "./b.js";\n' };
    expect(checkImports([file])).toEqual([]);
  });

  it("catches an import against the direction", () => {
    const file = { path: "packages/format/src/a.ts", text: 'import { x } from "@tito/sidecar";\n' };
    expect(messages(checkImports([file]))).toEqual(["format may not import @tito/sidecar"]);
  });

  it("catches a relative import that leaves its package", () => {
    const file = { path: "packages/format/src/a/b.ts", text: 'export * from "../../../sidecar/src/index.js";\n' };
    expect(messages(checkImports([file]))[0]).toContain("leaves the package");
  });

  it("catches a node import in the pure engine, also a dynamic one", () => {
    const file = { path: "packages/continuity/src/a.ts", text: 'const fs = await import("node:fs");\n' };
    expect(messages(checkImports([file]))).toEqual(["continuity is pure and may not import node:fs"]);
  });

  it("catches testkit in shipped code and allows it in tests", () => {
    const text = 'import { x } from "@tito/testkit";\n';
    expect(checkImports([{ path: "packages/cli/src/a.ts", text }])).toHaveLength(1);
    expect(checkImports([{ path: "packages/cli/test/a.test.ts", text }])).toEqual([]);
  });

  it("catches an undeclared direction in a package.json", () => {
    expect(checkManifest("format", ["msgpackr", "@tito/cli"])).toHaveLength(1);
    expect(checkManifest("cli", ["commander", "@tito/sidecar"])).toEqual([]);
  });
});

describe("direction between rooms", () => {
  const tables = { p: { ground: [], middle: ["ground"], top: ["ground", "middle"] } };
  const source = (path: string, text = "export {};\n") => ({ path: `packages/p/src/${path}`, text });
  const ground = source("ground/a.ts");
  const found = (...files: { path: string; text: string }[]) => messages(checkRooms(files, tables));

  it("lets a room import what its row allows, its own files, and the index everything", () => {
    const files = [
      ground,
      source("ground/b.ts", 'import { a } from "./a.js";\n'),
      source("middle/c.ts", 'import { a } from "../ground/a.js";\n'),
      source("top.ts", 'import { c } from "./middle/c.js";\n'),
      source("index.ts", 'export { a } from "./ground/a.js";\nexport { t } from "./top.js";\n'),
    ];
    expect(found(...files)).toEqual([]);
  });

  it.each([
    ["a value", 'import { m } from "../middle/m.js";\n'],
    ["a type", 'import type { M } from "../middle/m.js";\n'],
    ["a re-export", 'export * from "../middle/m.js";\n'],
    ["a module that is loaded late", 'const m = await import("../middle/m.js");\n'],
    ["a list over several lines", 'import {\n  m,\n  n,\n} from "../middle/m.js";\n'],
  ])("catches an arrow against the direction: %s", (_, text) => {
    const [finding, ...more] = checkRooms([source("ground/a.ts", text), source("middle/m.ts")], tables);
    expect(finding).toMatchObject({ path: "packages/p/src/ground/a.ts" });
    expect(finding?.message).toBe("room ground may not import from room middle");
    expect(more).toEqual([]);
  });

  it("catches an import of the index from inside, and a room without a row", () => {
    expect(found(source("top.ts", 'import "./index.js";\n'), source("index.ts"))).toEqual([
      "room top may not import from room index",
    ]);
    expect(found(source("cellar/a.ts"))).toEqual(["room cellar has no row in scripts/checks/room-table.ts"]);
  });

  it("catches files in a circle, of types too, of any length, also in a package without rooms", () => {
    const circle = ["a", "b", "c"].map((name, at, all) => ({
      path: `packages/flat/src/${name}.ts`,
      text: `import type { X } from "./${all[(at + 1) % all.length]}.js";\n`,
    }));
    expect(found(...circle)).toEqual(["files import each other in a circle: a.ts, b.ts, c.ts"]);
    expect(found(...circle.slice(1))).toEqual([]);
  });

  it.each(Object.entries(ALLOWED_ROOMS))(
    "the table of %s has no arrow back: each row allows rows above it",
    (_, table) => {
      const rows = Object.keys(table);
      rows.forEach((room, at) => {
        expect(rows.slice(0, at), room).toEqual(expect.arrayContaining([...table[room]!]));
      });
      expect(circlesOf(rows, (room) => table[room]!)).toEqual([]);
    },
  );
});

describe("file shape", () => {
  it("catches a source of more than 500 lines", () => {
    expect(messages(checkShape([{ path: "packages/format/src/long.ts", text: "x;\n".repeat(501) }]))[0]).toContain(
      "501 lines",
    );
    expect(checkShape([{ path: "packages/format/src/long.ts", text: "x;\n".repeat(500) }])).toEqual([]);
  });

  it("catches a utils.ts and a name that is not kebab-case", () => {
    expect(checkShape([{ path: "packages/format/src/utils.ts", text: "" }])).toHaveLength(1);
    expect(checkShape([{ path: "packages/format/src/FrameCodec.ts", text: "" }])).toHaveLength(1);
  });

  it("catches an index.ts that does not say what it owns and never does", () => {
    expect(checkShape([{ path: "packages/format/src/index.ts", text: "export {};\n" }])).toHaveLength(1);
  });

  it.each(["it.only(", "describe.skip(", "expect(true)", `TO${"DO"}`])("catches %s", (mark) => {
    expect(checkShape([{ path: "packages/format/test/a.test.ts", text: `${mark}\n` }])).toHaveLength(1);
  });

  it("catches a sleep in a test", () => {
    const text = "await new Promise((resolve) => setTimeout(resolve, 50));\n";
    expect(checkShape([{ path: "packages/format/test/a.test.ts", text }])).toHaveLength(1);
  });
});

describe("seeds of tests", () => {
  const path = "packages/format/test/a.test.ts";

  it.each([
    "const seed = Number(process.env.TITO_SEED ?? Date.now() % 1_000_000);",
    "const start = { seed: performance.now() };",
    "const at = Date.now() % 7;",
    "if (Math.random() < 0.5) flip();",
    "const data = randomBytes(3000);",
    "const id = crypto.randomUUID();",
    "fc.assert(property, { interruptAfterTimeLimit: 3000 });",
    "while (Date.now() < end) await tryOne();",
    "for (;;) if (performance.now() - start > 3000) break;",
    "fc.configureGlobal({ seed: 3 });",
  ])("O.130 catches %s", (text) => {
    expect(checkSeeds([{ path, text: `${text}\n` }]).length).toBeGreaterThan(0);
    expect(checkSeeds([{ path: "packages/sidecar/src/a.ts", text }])).toEqual([]);
  });

  it.each([
    ["integrations/x/tests/test_a.py", "random.shuffle(rows)\n"],
    ["integrations/x/tests/test_a.py", "rng = random.Random()\n"],
    ["integrations/x/tests/test_a.py", "x = torch.randn(3)\n"],
    ["scripts/a.sh", "port=$RANDOM\n"],
  ])("O.130 catches it in other languages too: %s, %s", (at, text) => {
    expect(checkSeeds([{ path: at, text }])).toHaveLength(1);
  });

  it.each([
    [
      path,
      "const seed = Number(process.env.TITO_SEED ?? 980_632);\nconst started = Date.now();\nconst took = Date.now() - started;\n",
    ],
    ["integrations/x/tests/test_a.py", "rng = random.Random(7)\nrng.shuffle(rows)\n"],
    ["integrations/x/tests/test_a.py", "torch.manual_seed(1)\nx = torch.randn(3)\n"],
  ])("lets %s draw from a seed and measure a time", (at, text) => {
    expect(checkSeeds([{ path: at, text }])).toEqual([]);
  });

  it("O.130 every property test draws from the seed that is set for all, or from the one that it is given", () => {
    expect(fc.readConfigureGlobal()?.seed).toBe(Number(process.env.TITO_SEED ?? 20_261_201));
  });

  it("knows which tests a fresh seed says something new about", () => {
    const text = 'import fc from "fast-check";\n';
    const files = [
      { path, text },
      { path: "packages/format/test/b.test.ts", text: "it();\n" },
      { path: "packages/testkit/test/c.crash.test.ts", text },
    ];
    expect(findSeededTests(files)).toEqual([path]);
  });
});

describe("words", () => {
  it("catches a path of the machine", () => {
    expect(checkWords([{ path: "README.md", text: `see ${root}/docs` }], root)).not.toEqual([]);
  });

  it("catches a download address in a lockfile", () => {
    expect(
      checkWords([{ path: "x/package-lock.json", text: `"resolved": "${"https"}://a.example/b.tgz"` }], root),
    ).toHaveLength(1);
  });
});

describe("links", () => {
  it("catches a link to a test that does not exist", () => {
    const file = { path: "docs/promises.md", text: "[proof](../packages/format/test/gone.test.ts)" };
    expect(checkLinks([file], () => false)).toHaveLength(1);
    expect(checkLinks([file], (path) => path === "packages/format/test/gone.test.ts")).toEqual([]);
  });
});

describe("tools", () => {
  const dir = mkdtempSync(join(tmpdir(), "tito-check-"));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  mkdirSync(join(dir, "src"));
  symlinkSync(join(root, "node_modules"), join(dir, "node_modules"));
  writeFileSync(
    join(dir, "tsconfig.json"),
    '{"compilerOptions":{"strict":true,"noEmit":true,"types":[]},"include":["src"]}',
  );
  writeFileSync(
    join(dir, "biome.json"),
    JSON.stringify({
      linter: { rules: { complexity: { noExcessiveLinesPerFunction: { level: "error", options: { maxLines: 70 } } } } },
    }),
  );
  writeFileSync(join(dir, "package.json"), '{"name":"planted","type":"module","main":"src/index.ts"}');
  writeFileSync(join(dir, "knip.json"), '{"entry":["src/index.ts"],"project":["src/**/*.ts"]}');

  it("the type check catches a wrong type and passes a right one", () => {
    writeFileSync(join(dir, "src/index.ts"), "export const a: number = 1;\n");
    expect(runTool(dir, "tsc", ["-p", "tsconfig.json"])).toBe(true);
    writeFileSync(join(dir, "src/index.ts"), 'export const a: number = "one";\n');
    expect(runTool(dir, "tsc", ["-p", "tsconfig.json"])).toBe(false);
  });

  it("the linter catches a function of more than 70 lines", () => {
    const long = (lines: number) => `export function f(x: number) {\n${"\tx++;\n".repeat(lines)}\treturn x;\n}\n`;
    writeFileSync(join(dir, "src/index.ts"), long(60));
    expect(runTool(dir, "biome", ["lint", "src"])).toBe(true);
    writeFileSync(join(dir, "src/index.ts"), long(80));
    expect(runTool(dir, "biome", ["lint", "src"])).toBe(false);
  });

  it("the dead-code check catches a file that nothing imports", () => {
    writeFileSync(join(dir, "src/index.ts"), "export const a = 1;\n");
    expect(runTool(dir, "knip", ["--no-progress"])).toBe(true);
    writeFileSync(join(dir, "src/dead.ts"), "export const b = 1;\n");
    expect(runTool(dir, "knip", ["--no-progress"])).toBe(false);
  });
});
