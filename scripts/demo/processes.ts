/** The demo's processes: the real `tito` command, as a user runs it. */

import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { execa } from "execa";

export const root = resolve(import.meta.dirname, "../..");
const TITO = join(root, "packages/cli/dist/main.js");

export interface EngineProcess {
  url: string;
  stop(): Promise<void>;
}

/** Starts `tito engine` and waits for its first line. `logFile` gets exactly what it saw and sampled; `policy` is the trained model unless it is a script. */
export async function startEngineProcess(options: {
  seed: number;
  logFile: string;
  policy?: string;
}): Promise<EngineProcess> {
  const policy = options.policy === undefined ? [] : ["--policy", options.policy];
  const child = execa(
    process.execPath,
    [TITO, "engine", "--seed", String(options.seed), "--log", options.logFile, "--prompt-tokens-details", ...policy],
    {
      stderr: "inherit",
      stdin: "ignore",
      buffer: false,
      reject: false,
    },
  );
  for await (const line of createInterface({ input: child.stdout! })) {
    const { url } = JSON.parse(line) as { url: string };
    return {
      url,
      stop: async () => {
        child.kill("SIGTERM");
        await child;
      },
    };
  }
  throw new Error(`the engine ended before it listened, exit code ${(await child).exitCode}`);
}

/** Runs `tito ARGS`; its output goes where the demo's goes, or is answered. */
export async function tito(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; output?: "inherit" | "pipe"; timeoutMs?: number } = {},
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  const run = await execa(process.execPath, [TITO, ...args], {
    cwd: options.cwd ?? root,
    stdin: "ignore",
    stdout: options.output ?? "pipe",
    stderr: options.output ?? "pipe",
    reject: false,
    ...(options.env === undefined ? {} : { env: options.env, extendEnv: false }),
    ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }),
  });
  return { exitCode: run.exitCode ?? 1, stdout: String(run.stdout ?? ""), stderr: String(run.stderr ?? "") };
}
