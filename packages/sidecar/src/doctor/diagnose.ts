/** What could go wrong here, before it does. Everything is tried on things of our own, and nothing is left behind. */
import { lstatSync, readFileSync, statSync } from "node:fs";
import { type Disk, nodeDisk } from "@tito/format";
import { checkAgent } from "./agent-checks.js";
import { checkNames, checkOwnership, checkSyncs, existingPart, openProbe, type Probe } from "./directory-checks.js";
import { diskFigures, judgeFileSystem, judgeInodes, judgeSpace } from "./disk-figures.js";
import { type Finding, finding, reasonOf } from "./finding.js";
import { judgeLayers } from "./layers.js";
import { checkEngine, checkLoopback, isLocalUrl, judgeProxy } from "./network-checks.js";
import { judgeClock, judgeNode, judgeOpenFiles, openFileLimit } from "./process-checks.js";

export interface DiagnoseOptions {
  /** The directory that trajectories would go to; it need not exist. */
  out: string;
  /** Null: the agent shares the recorder's user. */
  agentUser?: string | null;
  upstream?: string | null;
  model?: string | null;
  upstreamKey?: string | null;
  host?: string;
  anchorFd?: boolean;
  hmacKeyFile?: string | null;
  env?: Readonly<Record<string, string | undefined>>;
  disk?: Disk;
}

/** In the order of the table. Never throws for what it finds; @throws TitoError `usage` for an --upstream that is no URL. */
export async function diagnose(options: DiagnoseOptions): Promise<Finding[]> {
  const { upstream = null, agentUser = null, disk = nodeDisk } = options;
  const engine =
    upstream === null
      ? finding("engine", "skipped", "no --upstream was given")
      : await checkEngine({ upstream, model: options.model ?? null, upstreamKey: options.upstreamKey ?? null });
  const findings = [judgeNode(process.versions.node), judgeOpenFiles(openFileLimit())];
  const parent = existingPart(options.out);
  const opened = tryProbe(disk, parent);
  const probe = "probe" in opened ? opened.probe : null;
  try {
    findings.push(judgeClock(Date.now(), probe === null ? null : lstatSync(probe.file).mtimeMs));
    if ("problem" in opened) findings.push(opened.problem);
    else findings.push(...(await checkDirectory(options.out, parent, disk, opened.probe)));
    findings.push(await checkLoopback(options.host ?? "127.0.0.1"), judgeProxy(options.env ?? process.env), engine);
    const agent = checkAgent(agentUser, probe);
    findings.push(agent.finding);
    const held = findings.filter((one) => one.check === "names" || one.check === "directory");
    const { hmacKeyFile = null, anchorFd = false } = options;
    findings.push(
      ...judgeLayers({
        namesHold: probe === null ? null : held.every((one) => one.level === "ok"),
        upstreamLocal: upstream === null ? null : isLocalUrl(upstream),
        anchorFd,
        hmacKey: hmacKeyFile !== null,
        hmacKeyExposed: hmacKeyFile !== null && isReadable(hmacKeyFile),
        agentSeparate: agent.separate,
      }),
    );
    return findings;
  } finally {
    probe?.remove();
  }
}

function tryProbe(disk: Disk, parent: string): { probe: Probe } | { problem: Finding } {
  try {
    if (!statSync(parent).isDirectory()) throw new Error("it is not a directory");
    return { probe: openProbe(disk, parent) };
  } catch (error) {
    const message = `nothing can be written in ${parent}: ${reasonOf(error)}`;
    return { problem: finding("directory", "failure", message, "choose another --out") };
  }
}

async function checkDirectory(out: string, parent: string, disk: Disk, probe: Probe): Promise<Finding[]> {
  const figures = diskFigures(probe.dir);
  return [
    checkOwnership(out, parent, probe),
    checkNames(disk, probe),
    judgeFileSystem(figures.type),
    judgeSpace(figures),
    judgeInodes(figures),
    await checkSyncs(disk, probe),
  ];
}

/** By us, and so by an agent under the same user. */
function isReadable(file: string): boolean {
  try {
    readFileSync(file);
    return true;
  } catch {
    return false;
  }
}
