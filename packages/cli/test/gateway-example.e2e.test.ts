/** docs/gateway.md does what it says: its commands run as they stand, with the real engine, gateway and example. */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { startEngine } from "@tito/reference-engine";
import { expect, it, onTestFinished } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../..");
const DOCUMENT = readFileSync(join(ROOT, "docs/gateway.md"), "utf8");

/** Right about one task, wrong about the other. */
const RULES = [
  { match: { contains: "2 + 3", lastContains: "number alone" }, reply: { content: "5" } },
  { match: { contains: "4 * 6", lastContains: "number alone" }, reply: { content: "25" } },
  { match: {}, reply: { content: "Let me see." } },
];

it("the commands of docs/gateway.md lead from nothing to samples", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tito-gateway-example-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const script = join(dir, "script.json");
  writeFileSync(script, JSON.stringify(RULES));
  const engine = await startEngine({ policy: `script:${script}` });
  onTestFinished(() => engine.close());
  const tito = join(dir, "tito");
  writeFileSync(tito, `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, "packages/cli/dist/main.js")}" "$@"\n`);
  chmodSync(tito, 0o755);

  const commands = /^```sh\n(.*?)^```$/ms.exec(DOCUMENT)![1]!;
  const { stdout } = await promisify(execFile)("bash", ["-e", "-c", commands], {
    cwd: dir,
    env: { PATH: `${dir}:${process.env.PATH}`, UPSTREAM: engine.url, MODEL: "policy", TITO: ROOT },
    timeout: 120_000,
  });
  for (const id of ["sum-1", "sum-2", "product-1", "product-2"]) expect(stdout).toContain(`${id}: complete, 2 turns`);
  expect(readdirSync(join(dir, "trajectories"))).toEqual(["sealed-ids.txt"]);

  const runs = readFileSync(join(dir, "samples.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { group_id: string; reward: number; trajectory_ids: string[] });
  const told = runs.map(({ group_id, reward, trajectory_ids }) => `${trajectory_ids.join()} ${group_id} ${reward}`);
  expect(told.sort()).toEqual(["product-1 product 0", "product-2 product 0", "sum-1 sum 1", "sum-2 sum 1"]);
});
