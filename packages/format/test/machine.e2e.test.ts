/** What needs the machine itself: a small disk, a failing device, another user, other processes. What can not run here says SKIPPED and why. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readTrajectory } from "../src/read/read-trajectory.js";
import { verifyTrajectory } from "../src/verify/verify.js";
import { writeLargeSegment } from "./support/large-segment.js";
import { Conversation, openWriter, tempDir } from "./support/turns.js";

const fixture = (name: string): string => path.resolve(import.meta.dirname, "fixtures", name);
/** From util-linux: starts a program under another user. */
const SETPRIV = "setpriv";
const isRoot = process.getuid?.() === 0;

interface Recorded {
  released: string[];
  refused: { call: number; code: string } | null;
  state: { kind: string } | null;
  manifest: { status: string; counts: { gaps: number } } | null;
  error?: string;
}

function run(command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Recorded {
  const { stdout, stderr } = spawnSync(command, args, { encoding: "utf8", ...options });
  const line = stdout.trim().split("\n").at(-1) ?? "";
  expect(line, stderr).not.toBe("");
  return JSON.parse(line) as Recorded;
}

/** Starts one of the machine's own programs, which may not be there. */
function tool(program: string, args: string[]): { status: number | null; stderr: string } {
  return spawnSync(program, args, { encoding: "utf8" });
}

/** True when the command can be started. */
function has(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;
}

function expectDegraded(out: string, recorded: Recorded): void {
  expect(recorded.error).toBeUndefined();
  expect(recorded.refused).toMatchObject({ code: "capture_degraded" });
  expect(recorded.refused!.call).toBe(recorded.released.length + 1);
  expect(recorded.state).toMatchObject({ kind: "degraded" });
  const log = readTrajectory(path.join(out, "t1"), { mode: "salvage" });
  const found = log.segments.flatMap((segment) => segment.turns.map((item) => item.record.call_id));
  expect(found.slice(0, recorded.released.length)).toEqual(recorded.released);
}

describe("a disk that is full", () => {
  it("degrades within one call, seals from the ballast, and loses nothing that was released: tmpfs of 1 MiB", () => {
    if (!isRoot) {
      console.log("SKIPPED: mounting a tmpfs needs root");
      return;
    }
    const out = tempDir();
    const mounted = tool("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", out]);
    if (mounted.status !== 0) {
      console.log(`SKIPPED: a tmpfs can not be mounted here (${mounted.stderr.trim()})`);
      return;
    }
    try {
      const recorded = run(process.execPath, [fixture("record.mjs"), out, "100", "20000"]);
      expectDegraded(out, recorded);
      expect(recorded.released.length).toBeGreaterThan(5);
      expect(recorded.manifest).toMatchObject({ status: "degraded", counts: { gaps: 1 } });
      expect(verifyTrajectory(path.join(out, "t1")).status).toBe("incomplete");
    } finally {
      tool("umount", [out]);
    }
  });

  it("the same under a file size limit, without root", () => {
    const out = tempDir();
    const command = `ulimit -f 512; exec ${process.execPath} ${fixture("record.mjs")} ${out} 100 20000`;
    const recorded = run("bash", ["-c", command]);
    expectDegraded(out, recorded);
    expect(recorded.manifest?.status).toBe("degraded");
  });

  it("with too few descriptors: the trajectory is refused or degraded, never half recorded", () => {
    const out = tempDir();
    for (const limit of [22, 24, 26, 28, 30, 34]) {
      const command = `ulimit -n ${limit}; exec ${process.execPath} ${fixture("record.mjs")} ${path.join(out, String(limit))} 3 100`;
      const { stdout } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
      if (stdout.trim() === "") continue;
      const recorded = JSON.parse(stdout.trim()) as Recorded;
      if (recorded.error !== undefined) expect(["cannot_write", "io"]).toContain(recorded.error);
      else if (recorded.refused === null) expect(recorded.manifest?.status).toBe("complete");
      else expect(recorded.state).toMatchObject({ kind: "degraded" });
    }
  });
});

describe("a device that fails", () => {
  /** strace counts calls per thread, so all of libuv's work is given to one: which syncs fail must not depend on who ran them. */
  const ONE_THREAD = { env: { ...process.env, UV_THREADPOOL_SIZE: "1" } };

  /** Records ten turns while `fdatasync` fails at `when` (strace's notation); null, with the reason printed, where strace can not trace. */
  function recordWithFailingSync(out: string, when: string): Recorded | null {
    if (!has("strace")) {
      console.log("SKIPPED: strace is not here");
      return null;
    }
    const inject = [
      "-f",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      "trace=fdatasync",
      "-e",
      `inject=fdatasync:error=EIO:when=${when}`,
    ];
    const probe = tool("strace", [...inject, "true"]);
    if (probe.status !== 0) {
      console.log(`SKIPPED: strace can not trace here (${probe.stderr.trim().slice(0, 200)})`);
      return null;
    }
    return run("strace", [...inject, process.execPath, fixture("record.mjs"), out, "10", "100"], ONE_THREAD);
  }

  it("EIO from one fdatasync, injected by strace: never durable, degraded, sealed as such", () => {
    const out = tempDir();
    const recorded = recordWithFailingSync(out, "5");
    if (recorded === null) return;
    expectDegraded(out, recorded);
    expect(recorded.manifest?.status).toBe("degraded");
  });

  it("EIO from every fdatasync after the fourth: no seal is claimed, and what was released is read back", () => {
    const out = tempDir();
    const recorded = recordWithFailingSync(out, "5+");
    if (recorded === null) return;
    expectDegraded(out, recorded);
    expect(recorded.manifest?.status).toContain("no seal: ");
    expect(recorded.manifest?.status).toContain("EIO");
    expect(verifyTrajectory(path.join(out, "t1")).status).toBe("incomplete");
  });
});

describe("two writers of one trajectory", () => {
  it("started at the same moment, 100 times: one records, the other is refused", async () => {
    const out = tempDir();
    for (let i = 0; i < 100; i++) {
      const trajectoryId = `t${i}`;
      const both = await Promise.allSettled([openWriter(out, { trajectoryId }), openWriter(out, { trajectoryId })]);
      const opened = both.flatMap((item) => (item.status === "fulfilled" ? [item.value] : []));
      const refused = both.flatMap((item) => (item.status === "rejected" ? [item.reason as { code: string }] : []));
      expect(opened).toHaveLength(1);
      expect(refused).toMatchObject([{ code: "already_exists" }]);
      await opened[0]!.commitTurn({ open: { parent: null }, turn: new Conversation("a").next() });
      await opened[0]!.seal({ reason: "test" });
      expect(verifyTrajectory(path.join(out, trajectoryId)).status).toBe("complete");
    }
  });

  it("as processes: eight at once, each file is one process's, and every frame is in order", async () => {
    const out = tempDir();
    const runs = Array.from({ length: 8 }, () => spawn(process.execPath, [fixture("record.mjs"), out, "20", "100"]));
    const outputs = await Promise.all(
      runs.map(
        (child) =>
          new Promise<Recorded>((resolve) => {
            let text = "";
            child.stdout.on("data", (data: Buffer) => {
              text += data.toString();
            });
            child.once("close", () => resolve(JSON.parse(text) as Recorded));
          }),
      ),
    );
    const recorded = outputs.filter((item) => item.error === undefined);
    expect(recorded.length).toBeGreaterThanOrEqual(1);
    for (const item of outputs)
      if (item.error !== undefined) expect(["already_exists", "trajectory_sealed"]).toContain(item.error);
    const log = readTrajectory(path.join(out, "t1"), { mode: "strict" });
    expect(log.gaps).toEqual([]);
    expect(log.commits).toHaveLength(recorded.reduce((sum, item) => sum + item.released.length, 0));
  });

  it("a lock whose process is gone, or whose number another process has now, does not hold", async () => {
    const out = tempDir();
    const first = await openWriter(out);
    first.abandon();
    for (const lock of ["999999999 1\n", `${process.pid} 1\n`, ""]) {
      const dir = path.join(out, "t1");
      const boot = readTrajectory(dir, { mode: "tail" }).journals.length;
      const file = path.join(dir, `writer-000${boot}.lock`);
      fs.writeFileSync(file, lock);
      if (lock === "") {
        await expect(openWriter(out)).rejects.toMatchObject({ code: "already_exists" });
        fs.utimesSync(file, 1, 1);
      }
      const next = await openWriter(out);
      expect(next.head().boot).toBe(boot + 1);
      expect(fs.existsSync(file)).toBe(false);
      next.abandon();
    }
  });
});

describe("an agent under another user", () => {
  it("can not read, change, remove, stop or kill", async () => {
    if (!isRoot || !has(SETPRIV)) {
      console.log("SKIPPED: another user needs root and setpriv");
      return;
    }
    const home = tempDir();
    fs.chmodSync(home, 0o1777);
    const as = (uid: string): string[] => [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"];
    // node and the fixtures must be readable to both; the tree may not be: they are copied where it is
    const bundle = path.join(home, "tito");
    const here = path.resolve(import.meta.dirname, "..");
    fs.cpSync(path.join(here, "dist"), path.join(bundle, "format/dist"), { recursive: true });
    fs.cpSync(path.join(here, "test/fixtures"), path.join(bundle, "format/test/fixtures"), { recursive: true });
    fs.writeFileSync(path.join(bundle, "package.json"), '{"type":"module"}');
    const msgpackr = fs.realpathSync(path.join(here, "node_modules/msgpackr"));
    fs.cpSync(msgpackr, path.join(bundle, "node_modules/msgpackr"), { recursive: true });
    fs.writeFileSync(path.join(bundle, "format/package.json"), '{"type":"module"}');
    execFileSync("chmod", ["-R", "a+rX", bundle]);
    const script = (name: string): string => path.join(bundle, "format/test/fixtures", name);

    const child = spawn(SETPRIV, [...as("61001"), process.execPath, script("record.mjs"), home, "2", "100", "hold"], {
      env: { PATH: process.env.PATH ?? "", CANARY: "secret" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const line = await new Promise<string>((resolve) =>
        child.stdout.once("data", (data: Buffer) => resolve(data.toString())),
      );
      const { ready, fds } = JSON.parse(line) as { ready: number; fds: string[] };
      const attack = (uid: string): Record<string, string> => {
        const args = [
          ...as(uid),
          process.execPath,
          script("attack.mjs"),
          String(ready),
          fds[0]!,
          path.join(home, "t1"),
        ];
        return JSON.parse(execFileSync(SETPRIV, args, { encoding: "utf8", cwd: home })) as Record<string, string>;
      };
      const before = fs.readFileSync(path.join(home, "t1/segments/000001.seg"));
      const outcome = attack("61002");
      for (const [attempt, result] of Object.entries(outcome)) expect(["EACCES", "EPERM"], attempt).toContain(result);
      expect(fs.readFileSync(path.join(home, "t1/segments/000001.seg"))).toEqual(before);
      expect(child.exitCode).toBeNull();
      // the same user can do all of it: the difference is the user, and nothing else
      const same = attack("61001");
      expect(Object.values(same).filter((result) => result === "done").length).toBeGreaterThanOrEqual(8);
    } finally {
      child.kill("SIGKILL");
    }
  });
});

describe("verifying a large trajectory", () => {
  it("takes no more memory for 160 MB than for 16 MB", () => {
    const rss = [16, 160].map((megabytes) => {
      const dir = path.join(tempDir(), "t1");
      writeLargeSegment(dir, megabytes * 1e6);
      const output = execFileSync(process.execPath, [fixture("verify-memory.mjs"), dir], { encoding: "utf8" });
      const result = JSON.parse(output) as { turns: number; rss: number };
      expect(result.turns).toBeGreaterThan(megabytes * 10);
      return result.rss;
    });
    console.log(`verify: ${rss.map((bytes) => `${Math.round(bytes / 1e6)} MB`).join(" for 16 MB, ")} for 160 MB`);
    expect(rss[1]! - rss[0]!).toBeLessThan(48 * 1024 * 1024);
  });
});
