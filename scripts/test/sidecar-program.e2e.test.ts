/** Bounds of the sidecar as it ships: sizes, what must not be in it, and ratios of the same run with generous ceilings. `npm run bench start` gives the figures. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { plainRoute, post, quantile, type Route, sidecarRoute } from "../bench/proxy/calls.js";
import { conversation, LARGE, PROBE } from "../bench/proxy/conversation.js";
import { Bench, processorMs, residentMib, SIDECAR_PROGRAM, startProgram } from "../bench/proxy/programs.js";
import { CHUNK_MS, chunkDelays, STREAM } from "../bench/stream.js";

/** 355 kB when it was set; the budget of the design. What pushes it over is most likely a library that should be loaded when it is needed. */
const BYTES_MAX = 400_000;
/** 2.2 on a quiet machine; a busy one stretches both. */
const START_RATIO_MAX = 5;
/** 1.36 on any machine: memory does not depend on its load. */
const MEMORY_RATIO_MAX = 1.6;
/** 8 when it was set, in processor time, which a busy machine hardly changes: the pipe does not read what it carries. */
const CALL_RATIO_MAX = 16;
/** 2 when it was set, on a busy machine. */
const CHUNK_RATIO_MAX = 5;

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
    expect(modules.filter((name) => !name.startsWith("node:"))).toEqual(["@tito/renderer/thread"]);
    expect(program).toMatch(/await import\("@tito\/renderer\/thread"\)/);
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

describe("a call through the sidecar", () => {
  it("takes at most sixteen times the processor time of a bare pipe, for an answer of 99 kB", async () => {
    const calls = conversation(LARGE);
    const upstream = await bench.engine([...conversation(PROBE), ...calls], { streamsIds: false });
    const pipe = await bench.pipe(upstream);
    const gateway = await bench.gateway(upstream, ["--durability", "write"]);
    const used = async (route: Route, pid: number): Promise<number> => {
      let before = 0;
      for (let round = 0; round < 8; round++) {
        // The first rounds are for the compiler.
        if (round === 3) before = processorMs(pid);
        for (const call of calls) await post(route.url(`r-${round}`), call.request);
      }
      return processorMs(pid) - before;
    };
    const bare = await used(plainRoute("pipe", pipe.line), pipe.child.pid!);
    const recorded = await used(sidecarRoute("tito", gateway.origin), gateway.program.child.pid!);
    expect(recorded / bare).toBeLessThan(CALL_RATIO_MAX);
  });

  it("keeps a chunk at most five times as long as a bare pipe, best of five", async () => {
    const [call] = conversation(STREAM, true);
    const upstream = await bench.engine([...conversation(PROBE), call!], { streamsIds: true, chunkMs: CHUNK_MS });
    const pipe = plainRoute("pipe", (await bench.pipe(upstream)).line);
    const tito = sidecarRoute("tito", (await bench.gateway(upstream)).origin);
    let round = 0;
    const median = (route: Route): Promise<number> =>
      best(async () => quantile(await chunkDelays(route.url(`s-${round++}`), call!.request), 0.5));
    expect((await median(tito)) / (await median(pipe))).toBeLessThan(CHUNK_RATIO_MAX);
  });
});

describe("the check of what is imported", () => {
  it("sees a library, however it is imported", () => {
    const text = 'import a from"undici";import"zod";const b=require("c");await import("d");import{e}from\'e\';';
    expect(importsOf(text).sort()).toEqual(["c", "d", "e", "undici", "zod"]);
  });
});
