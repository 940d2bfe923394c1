/** `tito run --agent-user NAME --harness pi`, for real: root starts it, a system user runs it, and each file has the owner that it should have. */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { startEngine } from "@tito/reference-engine";
import { findInstallation } from "@tito/testkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { DONE, shellCall, TASK } from "./scripts.js";

const TITO = resolve(import.meta.dirname, "../../dist/main.js");
/** A system user without a home: the hardest case. */
const AGENT = "nobody";

const installed = findInstallation("pi");
const missing =
  process.getuid?.() !== 0
    ? "needs root"
    : "missing" in installed
      ? installed.missing
      : whyOutOfReach(installed.binDirs);
if (missing !== null) console.warn(`SKIPPED --agent-user with pi: ${missing}`);

/** Mount namespaces are closed in some containers. */
const closed = missing ?? whyNoNamespace();
if (closed !== null && missing === null) console.warn(`SKIPPED read-only root with pi: ${closed}`);

function whyOutOfReach(binDirs: readonly string[]): string | null {
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, AGENT], { encoding: "utf8" })));
  try {
    execFileSync("/bin/sh", ["-c", 'test -x "$1/pi" && test -r "$2"', "sh", binDirs[0]!, TITO], {
      uid: uid!,
      gid: gid!,
      cwd: "/",
      stdio: "ignore",
    });
    return null;
  } catch {
    return `${AGENT} can not reach ${binDirs[0]}`;
  }
}

function whyNoNamespace(): string | null {
  try {
    execFileSync("/usr/bin/unshare", ["-m", "true"], { stdio: "ignore" });
    return null;
  } catch {
    return "needs /usr/bin/unshare -m";
  }
}

interface Stage {
  root: string;
  work: string;
  out: string;
  /** `tito run` of pi on the task; `wrap` goes before the command line. */
  run(flags: readonly string[], options?: { wrap?: readonly string[]; env?: Record<string, string> }): Promise<Ended>;
}

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** `command` is what the policy asks pi's shell to do before it is done. */
async function stage(command: string, engineOptions: { maxModelLen?: number } = {}): Promise<Stage> {
  if ("missing" in installed) throw new Error(installed.missing);
  const root = mkdtempSync(join(tmpdir(), "tito-agent-user-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  chmodSync(root, 0o755);
  const [work, out, script] = [join(root, "work"), join(root, "out"), join(root, "script.json")];
  mkdirSync(work);
  chmodSync(work, 0o777);
  const rules = [
    {
      match: { contains: "TITO-TASK", excludes: "step-one" },
      reply: { tool_calls: [shellCall("pi", `${command}; echo step-one`)] },
    },
    { match: { contains: "step-one" }, reply: { content: DONE } },
  ];
  writeFileSync(script, JSON.stringify(rules));
  const engine = await startEngine({ policy: `script:${script}`, ...engineOptions });
  onTestFinished(() => engine.close());
  const basics = ["--upstream", engine.url, "--model", "policy", "--out", out, "--trajectory-id", "t1"];
  return {
    root,
    work,
    out,
    run: (flags, { wrap = [], env = {} } = {}) => {
      const argv = [...wrap, process.execPath, TITO, "run", ...basics, "--harness", "pi", ...flags, "--", TASK];
      const path = [...installed.binDirs, process.env.PATH ?? ""].join(delimiter);
      return ended(argv, work, { HOME: "/root", ...env, PATH: path });
    },
  };
}

/** Without a terminal, and without an open pipe: pi waits for the end of one. */
function ended(argv: readonly string[], cwd: string, env: Record<string, string>): Promise<Ended> {
  const child = spawn(argv[0]!, argv.slice(1), { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on("data", (chunk) => {
    stderr += String(chunk);
  });
  return new Promise((done) => child.once("close", (code) => done({ code, stdout, stderr })));
}

/** Every path below `directory`, and itself, with its owner. */
function owners(directory: string): Set<number> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return new Set(["", ...names].map((name) => lstatSync(join(directory, name)).uid));
}

const ROOT = 0;
const agentUid = (): number => Number(execFileSync("id", ["-u", AGENT], { encoding: "utf8" }));

describe.runIf(missing === null)("tito run --agent-user with a harness (O.110)", () => {
  it("gives the agent the home that is made for it, with all in it, and not the record", async () => {
    const steps = [
      "id -un > who.txt",
      'find "$PI_CODING_AGENT_DIR/../.." > home.txt',
      `find "$PI_CODING_AGENT_DIR/../.." ! -user ${AGENT} > foreign.txt`,
      'touch "$HOME/kept" && echo "$HOME" > real-home.txt',
      "cat ../out/t1/journal.seg > stolen.txt",
    ];
    const { run, root, work, out } = await stage(steps.join("; "));
    const temporary = join(root, "tmp");
    mkdirSync(temporary);
    chmodSync(temporary, 0o755);

    const result = await run(["--agent-user", AGENT], { env: { TMPDIR: temporary } });
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining(DONE) });

    const said = (name: string): string => readFileSync(join(work, name), "utf8");
    expect(said("who.txt").trim()).toBe(AGENT);
    expect(said("home.txt")).toContain("models.json");
    expect(said("foreign.txt")).toBe("");
    // The user's own home does not exist: what a harness keeps below HOME goes to the one that was made.
    expect(said("real-home.txt")).toContain("tito-home-");
    expect(said("stolen.txt")).toBe("");
    expect(owners(work)).toEqual(new Set([ROOT, agentUid()]));
    expect(owners(out)).toEqual(new Set([ROOT]));
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("gives it a new or empty --harness-home, and keeps it; one with files of another is refused with what to do", async () => {
    const { run, root } = await stage("true");
    const home = join(root, "homes/agent");
    const empty = join(root, "empty");
    const others = join(root, "others");
    for (const dir of [empty, others]) mkdirSync(dir, { mode: 0o755 });
    writeFileSync(join(others, "file"), "of root");

    expect(await run(["--agent-user", AGENT, "--harness-home", home])).toMatchObject({ code: 0 });
    expect(owners(join(root, "homes"))).toEqual(new Set([agentUid()]));
    expect(readdirSync(join(home, ".pi/agent"))).toContain("models.json");
    const again = ["--trajectory-id", "t2", "--agent-user", AGENT, "--harness-home"];
    expect(await run([...again, empty])).toMatchObject({ code: 0 });
    expect(owners(empty)).toEqual(new Set([agentUid()]));

    const refused = await run([...again, others]);
    expect(refused).toMatchObject({ code: 73, stderr: expect.stringContaining(`chown -R ${AGENT} ${others}`) });
    expect(owners(others)).toEqual(new Set([ROOT]));
  });

  it("says so when the agent may not run the harness, or not write where it works", async () => {
    const { run, root, work } = await stage("true");
    const hidden = join(root, "hidden");
    mkdirSync(hidden, { mode: 0o700 });
    writeFileSync(join(hidden, "pi"), "#!/bin/sh\n", { mode: 0o755 });
    chmodSync(work, 0o755);
    const result = await run(["--agent-user", AGENT], { wrap: ["/usr/bin/env", `PATH=${hidden}`] });
    expect(result).toMatchObject({
      code: 126,
      stderr: expect.stringContaining(`pi: permission denied for user ${AGENT}`),
    });
    expect(result.stderr).toContain(`user ${AGENT} can not write to ${work}`);
  });
});

describe.runIf(missing === null)("the window that a harness plans with (O.111)", () => {
  it("is the engine's where the engine tells one, and that is said", async () => {
    const { run, root } = await stage("true", { maxModelLen: 60_000 });
    const home = join(root, "home");
    const result = await run(["--max-context-tokens", "90000", "--harness-home", home]);
    const words = "the harness plans with 60000 tokens of context (the engine's window) and answers of at most 7500";
    expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining(words) });
    const models = JSON.parse(readFileSync(join(home, ".pi/agent/models.json"), "utf8")) as {
      providers: { tito: { models: object[] } };
    };
    expect(models.providers.tito.models).toMatchObject([{ contextWindow: 60_000, maxTokens: 7500 }]);
  });
});

describe.runIf(closed === null)("tito run on a read-only root (O.112)", () => {
  /** A mount namespace in which only what is listed can be written to. */
  const readOnly = (writable: readonly string[], withShm: boolean): string[] => {
    const mounts = [
      "mount --make-rprivate /",
      ...writable.map((dir) => `mount --bind ${dir} ${dir}`),
      "mount -o remount,ro,bind /",
      ...["/tmp", "/var/tmp", "/root"].map((dir) => `(! mountpoint -q ${dir} || mount -o remount,ro,bind ${dir})`),
      withShm ? "mount -t tmpfs tmpfs /dev/shm" : "mount -t tmpfs -o ro tmpfs /dev/shm",
    ];
    return ["/usr/bin/unshare", "-m", "sh", "-c", `${mounts.join(" && ")} && exec "$@"`, "sh"];
  };

  it("falls back to a place that can be written to, and says which", async () => {
    const { run, work, out } = await stage('touch "$HOME/kept" && echo kept > kept.txt');
    mkdirSync(out);
    const result = await run([], { wrap: readOnly([work, out], true), env: { TMPDIR: "/tmp" } });
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining(DONE) });
    expect(result.stderr).toMatch(/can not write to \/tmp \(EROFS\): the harness's home is \/dev\/shm\/tito-home-/);
    expect(readdirSync(work)).toContain("kept.txt");
    expect(readdirSync(out)).toEqual(["t1"]);
  });

  it("names TMPDIR and --harness-home when there is none, and uses neither the record's directory nor a bare EROFS", async () => {
    const { run, work, out } = await stage("true");
    mkdirSync(out);
    const result = await run([], { wrap: readOnly([work, out], false), env: { TMPDIR: "/tmp", HOME: out } });
    expect(result.code).toBe(73);
    expect(result.stderr).toMatch(
      /the harness's home can not be made in any of \/tmp \(EROFS\), .*\/dev\/shm \(EROFS\)/,
    );
    expect(result.stderr).toMatch(/TMPDIR.*--harness-home DIR/);
    expect(readdirSync(out)).toEqual([]);
  });
});
