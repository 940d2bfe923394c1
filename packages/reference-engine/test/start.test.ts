import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { queuedFaultSchema } from "../src/faults/schema.js";
import { parseScript } from "../src/policy/script-schema.js";
import { engines, get, post } from "./support/running.js";

const { dir, start, script } = engines();
const GUIDE = readFileSync(new URL("../../../docs/embedded-engine.md", import.meta.url), "utf8");

describe("starting", () => {
  it("writes the endpoint once connections are accepted, and leaves nothing half-written", async () => {
    const endpointFile = join(dir, "endpoint.json");
    const engine = await start({ endpointFile, model: "tiny" });
    const endpoint = JSON.parse(readFileSync(endpointFile, "utf8"));
    expect(endpoint).toEqual({
      schema: "tito.engine_endpoint/v1",
      pid: process.pid,
      url: engine.url,
      host: "127.0.0.1",
      port: engine.port,
      model: "tiny",
    });
    expect((await get(`${endpoint.url}/health`)).status).toBe(200);
    expect(readdirSync(dir).filter((name) => name.startsWith("endpoint"))).toEqual(["endpoint.json"]);
  });

  it("closes what still runs", async () => {
    const engine = await start({ policy: script([{ reply: { content: "x" } }]) });
    await post(`${engine.url}/test/faults`, { fault: { kind: "hang_before_headers" } });
    const pending = post(`${engine.url}/v1/completions`, { prompt: "x" }).catch(() => "broken off");
    await post(`${engine.url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    await engine.close();
    expect(await pending).toBe("broken off");
    await expect(fetch(`${engine.url}/health`)).rejects.toThrow();
  });

  it("refuses a body that is announced larger than any prompt", async () => {
    const engine = await start();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { "content-type": "application/json", "content-length": 1e9 };
      const sent = request(`${engine.url}/v1/completions`, { method: "POST", headers }, (response) => {
        resolve(response.statusCode);
        sent.destroy();
      });
      sent.on("error", reject);
      sent.flushHeaders();
    });
    expect(status).toBe(413);
  });
});

describe("docs/embedded-engine.md", () => {
  it("explains every fault, and no other", () => {
    const kinds = queuedFaultSchema.shape.fault.options.map((option) => option.shape.kind.value);
    const section = GUIDE.slice(GUIDE.indexOf("## Going wrong"));
    expect(kinds.filter((kind) => !section.includes(`\`${kind}\``))).toEqual([]);
    expect(kinds.length).toBeGreaterThan(10);
  });

  it("shows a script that works", () => {
    const example = /```json\n(\[[\s\S]*?)```/.exec(GUIDE)?.[1] ?? "";
    expect(parseScript(JSON.parse(example), "docs/embedded-engine.md").rules).toHaveLength(3);
  });
});
