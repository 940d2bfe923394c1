/** Bounds of the sidecar as it ships: sizes, what must not be in it, and ratios of the same run with generous ceilings. `npm run bench start` gives the figures. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conversation, PROBE } from "../bench/proxy/conversation.js";
import { Bench, residentMib, SIDECAR_PROGRAM, startProgram } from "../bench/proxy/programs.js";

/** 355 kB when it was set; the budget of the design. What pushes it over is most likely a library that should be loaded when it is needed. */
const BYTES_MAX = 400_000;
/** 2.2 on a quiet machine; a busy one stretches both. */
const START_RATIO_MAX = 5;
/** 1.36 on any machine: memory does not depend on its load. */
const MEMORY_RATIO_MAX = 1.6;

const program = readFileSync(SIDECAR_PROGRAM, "utf8");
const bench = new Bench();
let engine: string;
let trajectory = 0;

beforeAll(async () => {
  engine = await bench.engine(conversation(PROBE), { streamsIds: true });
});
afterAll(() => bench.close());

/** Modules that a text imports, statically or not. */
function importsOf(text: string): string[] {
  const found = [...text.matchAll(/(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*["']([@\w][^"'\n]*)["']/g)];
  return [...new Set(found.map((match) => match[1]!))];
}

/** The library, or the package of ours, that a source of the program belongs to. */
function packageOf(source: string): string {
  const library = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1];
  if (library !== undefined) return library;
  if (source.startsWith("without-http2:")) return "without-http2";
  return `packages/${/^\.\.\/\.\.\/([a-z-]+)\/src\//.exec(source)?.[1] ?? "cli"}`;
}

function start(...extra: string[]): ReturnType<typeof startProgram> {
  const out = join(bench.dir, "out");
  trajectory += 1;
  return startProgram([
    ...extra,
    SIDECAR_PROGRAM,
    ...["--upstream", engine, "--model", "policy", "--engine", "vllm", "--out", out, "--log-level", "error"],
    ...["--trajectory-id", `t${trajectory}`],
  ]);
}

async function best(of: () => Promise<number>): Promise<number> {
  const found: number[] = [];
  for (let round = 0; round < 5; round++) found.push(await of());
  return Math.min(...found);
}

describe("the sidecar as it ships", () => {
  it("is one file of at most 400 kB", () => {
    expect(statSync(SIDECAR_PROGRAM).size).toBeLessThan(BYTES_MAX);
  });

  it("imports Node's own modules, and the renderer where a bundle asks for it, and nothing else", () => {
    const modules = importsOf(program);
    expect(modules.filter((name) => !name.startsWith("node:"))).toEqual(["@tito/renderer"]);
    expect(program).toMatch(/await import\("@tito\/renderer"\)/);
    expect(modules).toContain("node:http");
    expect(modules).not.toContain("node:http2");
    expect(modules).not.toContain("node:worker_threads");
  });

  it("is made of our own packages and four libraries: no undici, no tokenizer, no materializer, nothing native", () => {
    const { sources } = JSON.parse(readFileSync(`${SIDECAR_PROGRAM}.map`, "utf8")) as { sources: string[] };
    const packages = [...new Set(sources.map(packageOf))].sort();
    const libraries = ["@hono/node-server", "hono", "msgpackr", "zod"];
    const own = ["packages/cli", "packages/continuity", "packages/format", "packages/sidecar"];
    expect(packages.filter((name) => name !== "without-http2")).toEqual([...libraries, ...own].sort());
    const zod = sources.filter((source) => packageOf(source) === "zod");
    expect(zod.filter((source) => !/\/zod\/v4\/(?:core|mini)\//.test(source))).toEqual([]);
  });

  it("never calls fetch", () => {
    expect(/[^.\w]fetch\(/.exec(program)?.[0] ?? null).toBeNull();
  });

  it("starts within five times a bare Node, best of five", async () => {
    const node = await best(async () => {
      const bare = await startProgram(["-e", "console.log(0)"]);
      await bare.stop();
      return bare.startMs;
    });
    const sidecar = await best(async () => {
      const started = await start();
      await started.stop();
      return started.startMs;
    });
    expect(sidecar / node).toBeLessThan(START_RATIO_MAX);
  });

  it("keeps within 1.6 times the memory of a bare HTTP server, best of five", async () => {
    const memoryOf = async (started: ReturnType<typeof startProgram>): Promise<number> => {
      const running = await started;
      const mib = residentMib(running.child.pid!);
      await running.stop();
      return mib;
    };
    const server = 'require("node:http").createServer().listen(0, "127.0.0.1", () => console.log(0))';
    const bare = await best(() => memoryOf(startProgram(["-e", server])));
    const sidecar = await best(() => memoryOf(start()));
    expect(sidecar / bare).toBeLessThan(MEMORY_RATIO_MAX);
  });
});

describe("the check of what is imported", () => {
  it("sees a library, however it is imported", () => {
    const text = 'import a from"undici";import"zod";const b=require("c");await import("d");import{e}from\'e\';';
    expect(importsOf(text).sort()).toEqual(["c", "d", "e", "undici", "zod"]);
  });
});
