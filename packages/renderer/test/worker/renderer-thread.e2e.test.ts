import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Worker } from "node:worker_threads";
import { build } from "esbuild";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { loadBundle } from "../../src/bundle/load-bundle.js";
import { PromptRenderer } from "../../src/prompt-renderer.js";
import { startRenderer } from "../../src/worker/start-renderer.js";
import { withByteBundle } from "../byte-bundles.js";

const MESSAGES = [{ role: "user" as const, content: "the <|im_end|> thing" }];

/** Every thread that is started from here on. */
function watchThreads(): Worker[] {
  const threads: Worker[] = [];
  const add = (worker: Worker): void => void threads.push(worker);
  process.on("worker", add);
  onTestFinished(() => void process.off("worker", add));
  return threads;
}

describe("the renderer's thread", () => {
  it("gives what the renderer gives, and leaves the event loop free", async () => {
    await withByteBundle("qwen3", async (directory) => {
      const here = await PromptRenderer.open(await loadBundle(directory));
      const renderer = await startRenderer(directory);
      try {
        expect(renderer.contractId).toBe(here.contractId);
        expect(renderer.stopIds).toEqual(here.stopIds);
        const expected = here.render(MESSAGES, []);
        expect(await renderer.render(MESSAGES, [])).toEqual(expected);
        expect(await renderer.countTokens(MESSAGES, [])).toBe(expected.ids.length);
        expect(await renderer.decode(expected.ids)).toBe(here.decode(expected.ids));
        const sampled = here.tokenizer.encode("<think>\nwhy\n</think>\n\nyes 😀<|im_end|>");
        const context = { promptTail: expected.ids, promptTokens: expected.ids.length, tools: [] };
        expect(await renderer.parse(sampled, context)).toEqual(here.parse(sampled, context));
        const stream = renderer.streamParser(context);
        const deltas = [];
        for (const id of sampled) deltas.push(await stream.push(Int32Array.of(id)));
        const end = await stream.end();
        expect(deltas.map((delta) => delta.reasoning).join("") + end.rest.reasoning).toBe("why");
        expect(deltas.map((delta) => delta.content).join("") + end.rest.content).toBe("yes 😀");
        let turnsOfTheLoop = 0;
        const ticking = setInterval(() => turnsOfTheLoop++, 1);
        await renderer.render([{ role: "user", content: "=".repeat(2_000_000) }], []);
        clearInterval(ticking);
        expect(turnsOfTheLoop).toBeGreaterThan(5);
      } finally {
        await renderer.close();
      }
    });
  });

  it("refuses a broken bundle at start, and answers a refused conversation with the template's words", async () => {
    await withByteBundle("qwen3.5", async (directory) => {
      const renderer = await startRenderer(directory);
      await expect(renderer.render([{ role: "system", content: "only" }], [])).rejects.toMatchObject({
        code: "bad_request",
      });
      await renderer.close();
      await expect(renderer.render(MESSAGES, [])).rejects.toMatchObject({ code: "internal" });
      await appendFile(join(directory, "template.jinja"), "x");
      await expect(startRenderer(directory)).rejects.toMatchObject({ code: "bundle_invalid" });
    });
  });

  it("is started again when it ends, and goes on with what was under way", async () => {
    await withByteBundle("qwen3", async (directory) => {
      const threads = watchThreads();
      const restarts: number[] = [];
      const renderer = await startRenderer(directory, { onRestart: (count) => void restarts.push(count) });
      const expected = await renderer.render(MESSAGES, []);
      const text = "<think>\nwhy\n</think>\n\nyes 😀<|im_end|>";
      const here = await PromptRenderer.open(await loadBundle(directory));
      const sampled = here.tokenizer.encode(text);
      const stream = renderer.streamParser({ promptTail: expected.ids, promptTokens: expected.ids.length, tools: [] });
      const deltas = [];
      for (const [index, id] of sampled.entries()) {
        if (index % 5 === 3) await threads.at(-1)!.terminate();
        deltas.push(await stream.push(Int32Array.of(id)));
      }
      const end = await stream.end();
      expect(deltas.map((delta) => delta.reasoning).join("") + end.rest.reasoning).toBe("why");
      expect(deltas.map((delta) => delta.content).join("") + end.rest.content).toBe("yes 😀");
      const underWay = renderer.render(MESSAGES, []);
      await threads.at(-1)!.terminate();
      expect(await underWay).toEqual(expected);
      expect(restarts.length).toBe(threads.length - 1);
      expect(new Set(restarts)).toEqual(new Set([1]));
      await renderer.close();
    });
  });

  it("is given up when it ends at every request, and says so", async () => {
    await withByteBundle("qwen3", async (directory) => {
      const source = `const { parentPort } = require("node:worker_threads");
        parentPort.on("message", ({ call, name }) => {
          if (name !== "open") process.exit(1);
          parentPort.postMessage({ call, ok: true, value: { contract_id: "c", stop_ids: [], family: "qwen3" } });
        });`;
      const lost: unknown[] = [];
      const renderer = await startRenderer(directory, { worker: { source }, onLost: (error) => void lost.push(error) });
      for (let call = 0; call < 3; call++) {
        await expect(renderer.render(MESSAGES, [])).rejects.toMatchObject({ code: "internal" });
      }
      expect(lost).toMatchObject([{ code: "internal" }]);
      await renderer.close();
    });
  });

  it("runs from a program that is one file", async () => {
    await withByteBundle("qwen3", async (directory) => {
      const entry = join(directory, "main.ts");
      const index = fileURLToPath(new URL("../../src/index.ts", import.meta.url));
      await writeFile(
        entry,
        `import { isRendererThread, runRendererThread, startRenderer } from ${JSON.stringify(index)};
         if (isRendererThread()) runRendererThread();
         else {
           const renderer = await startRenderer(process.argv[2]!);
           const { ids } = await renderer.render([{ role: "user", content: "hi" }], []);
           console.log(JSON.stringify([...ids]));
         }`,
      );
      const program = join(directory, "program.mjs");
      const banner = "import{createRequire as __r}from'node:module';const require=__r(import.meta.url);";
      await build({
        entryPoints: [entry],
        bundle: true,
        platform: "node",
        format: "esm",
        target: "node20",
        outfile: program,
        banner: { js: banner },
        logLevel: "error",
      });
      const { stdout } = await execa(process.execPath, [program, directory]);
      const here = await PromptRenderer.open(await loadBundle(directory));
      expect(JSON.parse(stdout)).toEqual([...here.render([{ role: "user", content: "hi" }], []).ids]);
    });
  });
});
