/** The checks that are other people's programs. Each runs on the whole workspace and prints its own findings. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const TOOLS: readonly { name: string; args: readonly string[] }[] = [
  { name: "biome", args: ["ci", "--colors=off", "."] },
  { name: "tsc", args: ["-p", "tsconfig.json"] },
  { name: "knip", args: ["--no-progress"] },
];

/** Runs all tools in `root`; names of those that failed. */
export function runTools(root: string): string[] {
  return TOOLS.filter((tool) => !runTool(root, tool.name, tool.args)).map((tool) => tool.name);
}

export function runTool(root: string, name: string, args: readonly string[]): boolean {
  const run = spawnSync(join(root, "node_modules", ".bin", name), args, {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  if (run.status === 0) return true;
  console.error(`--- ${name} ${args.join(" ")}\n${run.stdout}${run.stderr}${run.error?.message ?? ""}`);
  return false;
}
