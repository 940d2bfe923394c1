import { chmodSync, existsSync, mkdirSync, readdirSync, statfsSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { FaultDisk } from "@tito/testkit";
import { describe, expect, it } from "vitest";
import { type DiagnoseOptions, diagnose, type Finding } from "../../src/index.js";
import { temporaryDir } from "../temporary.js";

const isRoot = process.getuid?.() === 0;

async function findings(options: Partial<DiagnoseOptions> = {}): Promise<Map<string, Finding>> {
  const all = await diagnose({ out: temporaryDir(), env: {}, ...options });
  const byCheck = new Map(all.map((one) => [one.check, one]));
  expect(byCheck.size).toBe(all.length);
  return byCheck;
}

describe("a place where everything works", () => {
  it("has no failure, and every check says what it saw", async () => {
    const found = await findings();
    expect([...found.keys()]).toEqual([
      "node",
      "open_files",
      "clock",
      "directory",
      "names",
      "file_system",
      "free_space",
      "free_inodes",
      "sync_latency",
      "loopback",
      "proxy",
      "engine",
      "agent_user",
      "layer_accident_proof",
      "layer_evident",
      "layer_anchored",
      "layer_keyed",
      "layer_separate_user",
      "layer_outside",
    ]);
    expect([...found.values()].filter((one) => one.level === "failure")).toEqual([]);
    expect(found.get("sync_latency")!.message).toMatch(/median of 20/);
    for (const one of found.values()) expect(one.message).not.toBe("");
  });

  it("is left as it was, also when the directory does not exist yet", async () => {
    const dir = temporaryDir();
    const found = await findings({ out: join(dir, "a", "b") });
    expect(found.get("directory")!.message).toContain(`to be made in ${dir}`);
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe("a place where something will fail", () => {
  it("a file stands where the directory should be", async () => {
    const file = join(temporaryDir(), "file");
    writeFileSync(file, "");
    const found = await findings({ out: join(file, "out") });
    expect(found.get("directory")).toMatchObject({ level: "failure" });
    expect(found.get("layer_accident_proof")).toMatchObject({ level: "skipped" });
  });

  it.each([
    ["the directory can not be made", { error: "ENOSPC", at: 1, calls: ["mkdir"] }, "directory", "ENOSPC"],
    ["no file can be opened", { error: "EMFILE", at: 1, calls: ["open"] }, "directory", "EMFILE"],
    ["a write fails", { error: "ENOSPC", at: 1, calls: ["writev"] }, "sync_latency", "ENOSPC"],
    ["a sync fails", { error: "EIO", at: 7, calls: ["fdatasync"] }, "sync_latency", "EIO"],
  ] as const)("%s", async (_, fault, check, message) => {
    const dir = temporaryDir();
    const found = await findings({ out: dir, disk: new FaultDisk(fault) });
    expect(found.get(check)).toMatchObject({ level: "failure", message: expect.stringContaining(message) });
    expect(readdirSync(dir)).toEqual([]);
  });

  it("the file system follows links that are not to be followed", async () => {
    const follows = new (class extends FaultDisk {
      override open(path: string, flags: number, mode?: number): number {
        return super.open(path.endsWith("/link") ? path.replace("/link", "/000001.seg") : path, flags, mode);
      }
    })();
    const found = await findings({ disk: follows });
    expect(found.get("names")).toMatchObject({ level: "failure", message: expect.stringContaining("O_NOFOLLOW") });
    expect(found.get("layer_accident_proof")).toMatchObject({ level: "warning" });
  });

  it("others may replace names above the directory", async () => {
    const open = join(temporaryDir(), "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    const found = await findings({ out: join(open, "out") });
    expect(found.get("directory")).toMatchObject({ level: "warning", message: expect.stringContaining(open) });
    chmodSync(open, 0o1777);
    expect((await findings({ out: join(open, "out") })).get("directory")).toMatchObject({ level: "ok" });
  });

  it.runIf(existsSync("/dev/shm") && statfsSync("/dev/shm").type === 0x01021994)(
    "memory is called memory",
    async () => {
      const found = await findings({ out: `/dev/shm/tito-doctor-test-${process.pid}` });
      expect(found.get("file_system")).toMatchObject({ level: "warning", message: "tmpfs" });
    },
  );

  it("the listen address is not this machine's", async () => {
    expect((await findings({ host: "192.0.2.1" })).get("loopback")).toMatchObject({ level: "failure" });
  });

  it("nothing answers where the engine should be", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    for (const model of [null, "policy"]) {
      const found = await findings({ upstream: `http://127.0.0.1:${port}`, model });
      expect(found.get("engine")).toMatchObject({ level: "failure", message: expect.stringContaining("ECONNREFUSED") });
    }
  });

  it("an upstream that is no URL is a wrong call, not a finding", async () => {
    await expect(findings({ upstream: "gpu-7" })).rejects.toMatchObject({ code: "usage" });
  });
});

describe("the agent's user", () => {
  it("shares the recorder's when none is named", async () => {
    const found = await findings();
    expect(found.get("agent_user")).toMatchObject({ level: "warning" });
    expect(found.get("layer_separate_user")).toMatchObject({ level: "warning" });
  });

  it("must exist and be another one", async () => {
    expect((await findings({ agentUser: "no-such-user-here" })).get("agent_user")).toMatchObject({ level: "failure" });
    expect((await findings({ agentUser: "root" })).get("agent_user")).toMatchObject({ level: "failure" });
  });

  it.runIf(isRoot)("is tried: nobody can neither read, write, move, signal nor look into the recorder", async () => {
    const found = await findings({ agentUser: "nobody" });
    expect(found.get("agent_user")).toMatchObject({ level: "ok" });
    expect(found.get("layer_separate_user")).toMatchObject({ level: "ok" });
  });

  it.runIf(isRoot)("is a failure where it can move the record away", async () => {
    const dir = temporaryDir();
    chmodSync(dir, 0o777);
    const found = await findings({ out: dir, agentUser: "nobody" });
    expect(found.get("agent_user")).toMatchObject({
      level: "failure",
      message: expect.stringContaining("move its directory"),
    });
    expect(found.get("layer_separate_user")).toMatchObject({ level: "warning" });
  });
});
