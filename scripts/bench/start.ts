/**
 * What a sidecar costs before its first call: from spawn to its first line against `node -e 0` (G11), resident memory against a bare HTTP server and by open
 * trajectory (G12), bytes of the program as it ships (G14). The start includes the probe of an engine that answers at once.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { post, sidecarRoute } from "./proxy/calls.js";
import { conversation, PROBE, SMALL } from "./proxy/conversation.js";
import { Bench, MAIN_PROGRAM, type Program, residentMib, SIDECAR_PROGRAM, startProgram } from "./proxy/programs.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const ROUNDS = 15;
const TRAJECTORIES = 256;
const IDLE_MS = 300;
const RAW_SERVER = join(import.meta.dirname, "raw-pipe.mjs");

interface Measured {
  startMs: number[];
  mib: number[];
}

async function measure(args: readonly string[], into: Measured): Promise<void> {
  const program: Program = await startProgram(args);
  await new Promise((idle) => setTimeout(idle, IDLE_MS));
  into.startMs.push(program.startMs);
  into.mib.push(residentMib(program.child.pid!));
  await program.stop();
}

/** Resident memory before and after so many trajectories have had one call each. */
async function perTrajectory(bench: Bench, engine: string): Promise<number> {
  const { origin, program } = await bench.gateway(engine, ["--durability", "write"]);
  const route = sidecarRoute("tito", origin);
  const [call] = conversation(SMALL);
  const open = async (name: string): Promise<unknown> => post(route.url(name), call!.request);
  for (let n = 0; n < 64; n++) await open(`warm-${n}`);
  const before = residentMib(program.child.pid!);
  for (let n = 0; n < TRAJECTORIES; n++) await open(`t-${n}`);
  return ((residentMib(program.child.pid!) - before) * 1024) / TRAJECTORIES;
}

export async function run(): Promise<Row[]> {
  const bench = new Bench();
  try {
    const engine = await bench.engine([...conversation(PROBE), ...conversation(SMALL)], { streamsIds: true });
    let n = 0;
    const flags = (): string[] => [
      ...["--upstream", engine, "--model", "policy", "--engine", "vllm", "--out", join(bench.dir, "start")],
      ...["--log-level", "error", "--trajectory-id", `s${n++}`],
    ];
    const programs: Record<string, () => string[]> = {
      node: () => ["-e", "console.log(0)"],
      server: () => [RAW_SERVER],
      sidecar: () => [SIDECAR_PROGRAM, ...flags()],
      command: () => [MAIN_PROGRAM, "sidecar", ...flags()],
    };
    const found = new Map<string, Measured>(Object.keys(programs).map((name) => [name, { startMs: [], mib: [] }]));
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, args] of Object.entries(programs)) {
        if (name === "node") found.get(name)!.startMs.push(await untilEnd(args()));
        else await measure(args(), found.get(name)!);
      }
    const least = (name: string, what: keyof Measured): number => Math.min(...found.get(name)![what]);
    const bytes = statSync(SIDECAR_PROGRAM).size;
    return [
      { name: "node -e 0", value: least("node", "startMs"), unit: "ms" },
      { name: "bare HTTP server, start", value: least("server", "startMs"), unit: "ms" },
      { name: "sidecar, start", value: least("sidecar", "startMs"), unit: "ms" },
      { name: "tito sidecar, start", value: least("command", "startMs"), unit: "ms" },
      {
        name: "sidecar, start, of node -e 0 (goal 3.3)",
        value: least("sidecar", "startMs") / least("node", "startMs"),
        unit: "ratio",
        ratioTo: "node -e 0",
      },
      { name: "bare HTTP server, memory", value: least("server", "mib"), unit: "MiB" },
      { name: "sidecar, idle memory", value: least("sidecar", "mib"), unit: "MiB" },
      {
        name: "sidecar, idle memory, of a bare server (goal 1.35)",
        value: least("sidecar", "mib") / least("server", "mib"),
        unit: "ratio",
        ratioTo: "bare server",
      },
      { name: "memory of an open trajectory (goal 64)", value: await perTrajectory(bench, engine), unit: "KiB" },
      { name: "program in one file (budget 400)", value: bytes / 1000, unit: "kB" },
    ];
  } finally {
    await bench.close();
  }
}

/** Milliseconds from spawn to the exit of a program that does nothing. */
async function untilEnd(args: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  await (await startProgram(args)).stop();
  return performance.now() - startedMs;
}
