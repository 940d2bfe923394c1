import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { afterAll, describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const PROGRAM = join(root, "scripts/demo-rl.ts");
const dir = mkdtempSync(join(tmpdir(), "tito-rl-test-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Four starts of the demo, each with its processes: nothing is measured, but a busy machine takes its time. */
const LOADED_MACHINE_MS = 900_000;

interface Iteration {
  iteration: number;
  rollouts: number;
  sampled_by: string[];
  tokens_sampled: number;
  tokens_trained: number;
  tokens_stale: number;
  tokens_never_sampled: number;
  recorded_off_max: number;
  ratio_off_max: number;
}

const commandLine = (out: string, flags: readonly string[]) => [
  "--import",
  "tsx",
  PROGRAM,
  "--json",
  "--out",
  out,
  ...flags,
];

async function demo(out: string, flags: readonly string[]) {
  const run = await execa(process.execPath, commandLine(out, flags), { cwd: root, reject: false, stdin: "ignore" });
  const runs: { arm: string; iterations: Iteration[] }[] = run.exitCode === 0 ? JSON.parse(run.stdout).runs : [];
  const of = (arm: string) => runs.find((one) => one.arm === arm)!.iterations;
  return { exitCode: run.exitCode, stderr: run.stderr, of };
}

/** All processes that have to do with the directory, by their command lines. */
function findProcesses(path: string): { pid: number; line: string }[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return line.includes(path) ? [{ pid: Number(pid), line: line.replaceAll("\0", " ") }] : [];
    } catch {
      return [];
    }
  });
}

const processesAbout = (path: string): string[] => findProcesses(path).map(({ line }) => line);

/** Starts the demo and, once the first step is done, interrupts it as Ctrl-C does, or does what `act` does. */
async function interruptAfterFirstStep(
  out: string,
  flags: readonly string[],
  act = (demoPid: number, _pids: readonly { pid: number; line: string }[]) => process.kill(demoPid, "SIGINT"),
) {
  const child = spawn(process.execPath, commandLine(out, flags), { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
  let text = "";
  let whileRunning: { pid: number; line: string }[] = [];
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (chunk: string) => {
    text += chunk;
    if (whileRunning.length > 0 || !/tito samples +0 /.test(text)) return;
    whileRunning = findProcesses(out);
    act(child.pid!, whileRunning);
  });
  const exitCode = await new Promise<number | null>((done) => child.once("close", done));
  return { exitCode, text, whileRunning };
}

describe("three steps of the RL loop with real harnesses", () => {
  const out = join(dir, "loop");
  const flags = [
    "--arms",
    "tito,transcript",
    "--iterations",
    "3",
    "--tasks",
    "4",
    "--rollouts",
    "4",
    "--held-out",
    "16",
  ];

  it(
    "leave no process when they are interrupted, go on where they stopped, and keep their facts",
    async () => {
      const interrupted = await interruptAfterFirstStep(out, flags);
      expect(interrupted.whileRunning.filter(({ line }) => line.includes("main.js")).length).toBeGreaterThan(0);
      expect(interrupted.exitCode, interrupted.text).toBe(130);
      expect(interrupted.text).toContain(`--resume --out ${out}`);
      expect(processesAbout(out)).toEqual([]);

      const again = await demo(out, flags);
      expect([again.exitCode, again.stderr]).toEqual([64, expect.stringContaining("--resume")]);
      const other = await demo(out, [...flags, "--resume", "--clip", "0.3"]);
      expect([other.exitCode, other.stderr]).toEqual([64, expect.stringContaining("--clip 0.2 (now 0.3)")]);

      const { exitCode, stderr, of } = await demo(out, [...flags, "--resume"]);
      expect(exitCode, stderr).toBe(0);
      for (const arm of ["tito", "transcript"]) {
        expect(of(arm).map(({ iteration, sampled_by }) => [iteration, sampled_by])).toEqual([
          [0, ["step-0"]],
          [1, ["step-1"]],
          [2, ["step-2"]],
        ]);
      }
      for (const row of of("tito")) {
        expect(row.tokens_trained).toBe(row.tokens_sampled);
        expect(row.tokens_never_sampled).toBe(0);
        expect(row.ratio_off_max).toBeLessThan(1e-3);
        expect(row.recorded_off_max).toBeLessThan(1e-3);
      }
      for (const row of of("transcript")) {
        expect(row.tokens_never_sampled / row.tokens_trained).toBeGreaterThan(0.2);
        expect(row.ratio_off_max).toBe(0);
      }
      // The same policy, tasks and draws at the start: the arms differ by what they train on alone.
      expect(of("transcript")[0]!.tokens_sampled).toBe(of("tito")[0]!.tokens_sampled);
      expect(readFileSync(join(out, "curves.svg"), "utf8")).toContain("</svg>");
      expect(processesAbout(out)).toEqual([]);
    },
    LOADED_MACHINE_MS,
  );
});

describe("a loop whose programs are killed", () => {
  const flags = ["--arms", "tito", "--tasks", "1", "--rollouts", "2", "--held-out", "0", "--harness", "tool-loop"];

  it("leaves no process: an arm notices that the demo is gone, and stops its engine and its gateway", async () => {
    const out = join(dir, "demo-killed");
    const { exitCode, whileRunning } = await interruptAfterFirstStep(out, flags, (demoPid) =>
      process.kill(demoPid, "SIGKILL"),
    );
    expect(exitCode).toBe(null);
    await Promise.all(whileRunning.map(({ pid }) => execa("tail", [`--pid=${pid}`, "-f", "/dev/null"])));
    expect(processesAbout(out)).toEqual([]);
  });

  it("leaves no process: the demo ends what a killed arm left behind, and says which arm it was", async () => {
    const out = join(dir, "arm-killed");
    const { exitCode, text } = await interruptAfterFirstStep(out, flags, (_, all) =>
      process.kill(all.find(({ line }) => line.includes("arm-program"))!.pid, "SIGKILL"),
    );
    expect([exitCode, text]).toEqual([1, expect.stringContaining("tito: its program ended with SIGKILL")]);
    expect(processesAbout(out)).toEqual([]);
  });
});

describe("one step of staleness", () => {
  const flags = [
    "--arms",
    "tito",
    "--iterations",
    "3",
    "--tasks",
    "1",
    "--rollouts",
    "2",
    "--held-out",
    "0",
    "--harness",
    "tool-loop",
  ];

  it("samples with the weights before: they train at age 1", async () => {
    const { exitCode, stderr, of } = await demo(join(dir, "stale"), [...flags, "--stale", "1"]);
    expect(exitCode, stderr).toBe(0);
    expect(of("tito").map(({ sampled_by }) => sampled_by)).toEqual([["step-0"], ["step-0"], ["step-1"]]);
    for (const row of of("tito")) expect(row.tokens_trained).toBe(row.tokens_sampled);
    expect(of("tito")[0]!.ratio_off_max).toBeLessThan(1e-3);
  });

  it("with --max-version-age 0 masks what older weights sampled, and then trains nothing", async () => {
    const { exitCode, stderr, of } = await demo(join(dir, "fresh"), [
      ...flags,
      "--stale",
      "1",
      "--max-version-age",
      "0",
    ]);
    expect(exitCode, stderr).toBe(0);
    const rows = of("tito").map((row) => [row.tokens_stale === row.tokens_sampled, row.tokens_trained > 0]);
    expect(rows).toEqual([
      [false, true],
      [true, false],
      [true, false],
    ]);
  });
});
