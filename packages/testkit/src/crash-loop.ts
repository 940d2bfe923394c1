/**
 * Kills a recording process at random moments, again and again, and holds what its client saw against what is on disk: everything that was released is
 * there, exact, in order and once; what is there beyond it has no hole. Several kills hit one trajectory, so that recovery is killed too.
 */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { readTrajectory, rebuildLines, turnsInCommitOrder, verifyTrajectory } from "@tito/format";
import { seededRandom } from "./seeded-random.js";
import { openWriter } from "./turns.js";

export interface CrashLoopOptions {
  kills: number;
  seed: number;
  onProgress?: (done: number, report: CrashReport) => void;
}

/** Where the process was when it was killed. */
type KillPlace =
  | "before the write"
  | "inside the write"
  | "between write and release"
  | "after the release"
  | "while opening";

export interface CrashReport {
  kills: number;
  places: Record<KillPlace, number>;
  /** Turns that the client saw complete. */
  released: number;
  /** Files that ended inside a frame. */
  tornTails: number;
  /** What a client saw and the disk lacks, or any other broken promise; empty when all is well. */
  violations: string[];
}

const KILLS_PER_TRAJECTORY = 4;
const PLACE_OF_MARK: Record<string, KillPlace> = {
  P: "before the write",
  I: "inside the write",
  W: "between write and release",
  R: "after the release",
};

export async function runCrashLoop(options: CrashLoopOptions): Promise<CrashReport> {
  const random = seededRandom(options.seed);
  const report: CrashReport = {
    kills: 0,
    places: {
      "before the write": 0,
      "inside the write": 0,
      "between write and release": 0,
      "after the release": 0,
      "while opening": 0,
    },
    released: 0,
    tornTails: 0,
    violations: [],
  };
  while (report.kills < options.kills) {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), "tito-crash-"));
    try {
      await killOneTrajectory(dir, options, random, report);
    } finally {
      fs.rmSync(dir, { recursive: true, force: true });
    }
  }
  return report;
}

async function killOneTrajectory(
  dir: string,
  options: CrashLoopOptions,
  random: () => number,
  report: CrashReport,
): Promise<void> {
  const logFile = path.join(dir, "client.log");
  for (let i = 0; i < KILLS_PER_TRAJECTORY && report.kills < options.kills; i++) {
    const sizeBefore = fs.existsSync(logFile) ? fs.statSync(logFile).size : 0;
    const childSeed = Math.floor(random() * 2 ** 31);
    const failed = await runAndKill([dir, logFile, String(report.kills), String(childSeed)], random);
    if (failed !== null) report.violations.push(`kill ${report.kills}: the process ended by itself: ${failed}`);
    report.kills++;
    const marks = fs.existsSync(logFile) ? fs.readFileSync(logFile, "utf8").slice(sizeBefore).trim().split("\n") : [""];
    const place = PLACE_OF_MARK[marks.at(-1)!.charAt(0)] ?? "while opening";
    report.places[place]++;
    check(dir, logFile, `kill ${report.kills} (${place})`, report);
    options.onProgress?.(report.kills, report);
  }
  await sealAndCheck(dir, logFile, report);
}

/** Null when the process was killed; its error output when it ended before. */
function runAndKill(args: string[], random: () => number): Promise<string | null> {
  // it runs what was built, so that a kill costs one start of Node: `npm run build` comes first
  const script = path.join(import.meta.dirname, "../test/fixtures/crash-child.mjs");
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const delayMs = 5 + random() * 195;
  let errors = "";
  child.stderr.on("data", (data: Buffer) => {
    errors += data.toString();
  });
  // one kill in twenty falls while the process opens its files
  const opening = random() < 0.05;
  if (opening) setTimeout(() => child.kill("SIGKILL"), 20 + random() * 100);
  else child.stdout.once("data", () => setTimeout(() => child.kill("SIGKILL"), delayMs));
  return new Promise((resolve) => {
    child.once("close", (code, signal) =>
      resolve(signal === "SIGKILL" ? null : `exit ${code}: ${errors.slice(0, 2000)}`),
    );
  });
}

interface Release {
  callId: string;
  commit: number;
  file: string;
  promptSha256: string;
}

function readReleases(logFile: string): Release[] {
  if (!fs.existsSync(logFile)) return [];
  const lines = fs
    .readFileSync(logFile, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("R "));
  return lines.map((line) => {
    const [, callId, commit, file, promptSha256] = line.split(" ");
    return { callId: callId!, commit: Number(commit), file: file!, promptSha256: promptSha256! };
  });
}

function check(dir: string, logFile: string, when: string, report: CrashReport): void {
  const trajectory = path.join(dir, "t1");
  const releases = readReleases(logFile);
  if (!fs.existsSync(path.join(trajectory, "journal.seg"))) {
    if (releases.length > 0) report.violations.push(`${when}: no journal, ${releases.length} turns were released`);
    return;
  }
  const violate = (what: string): void => void report.violations.push(`${when}: ${what}`);
  const log = readTrajectory(trajectory, { mode: "tail" });
  const lines = rebuildLines(log);
  const turns = turnsInCommitOrder(log);
  const byCall = new Map(turns.map((turn) => [turn.record.call_id, turn]));
  if (byCall.size !== turns.length) violate("a call has two turns");
  for (const { callId, commit, file, promptSha256 } of releases) {
    const turn = byCall.get(callId);
    if (turn === undefined) violate(`${callId} was released and is lost`);
    else if (turn.commit !== commit || turn.place.file !== file)
      violate(`${callId} was released as commit ${commit} in ${file}`);
    else if (lines.statusOf(turn) !== "exact") violate(`${callId} is not exact: ${lines.statusOf(turn)}`);
    else if (Buffer.from(turn.record.prompt_sha256).toString("hex") !== promptSha256)
      violate(`${callId} has another prompt`);
  }
  for (const gap of log.gaps) {
    if (gap.reason === "torn_tail") report.tornTails++;
    else if (!gap.detail.includes("no segment header")) violate(`${gap.file}: ${gap.reason} ${gap.detail}`);
  }
  for (const finding of verifyTrajectory(trajectory).findings) {
    if (finding.severity === "damaged" || finding.severity === "tampered")
      violate(`${finding.file}: ${finding.code} ${finding.message}`);
  }
}

/** After the last kill the trajectory is opened once more and sealed, and still holds everything. */
async function sealAndCheck(dir: string, logFile: string, report: CrashReport): Promise<void> {
  const writer = await openWriter(dir);
  await writer.seal({ reason: "test" });
  report.released += readReleases(logFile).length;
  check(dir, logFile, `sealed after kill ${report.kills}`, report);
  if (!readTrajectory(path.join(dir, "t1"), { mode: "tail" }).complete)
    report.violations.push("a sealed trajectory is not complete");
}
