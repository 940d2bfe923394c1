/** The processes of one arm: the embedded engine and one gateway, by the `tito` command that users have. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const root = resolve(import.meta.dirname, "../../..");
const TITO = join(root, "packages/cli/dist/main.js");
const STOP_TIMEOUT_MS = 20_000;
/** Guards nothing but this run's own loopback port. */
const ADMIN_KEY = "admin-key-of-the-rl-demo";

export interface Services {
  readonly engineLog: string;
  /** Directory that holds a directory for each trajectory. */
  readonly capturedDir: string;
  /** Where the harness of one rollout sends its calls, and with which key. */
  endpoint(trajectoryId: string): { baseUrl: string; apiKey: string };
  /** Seals a trajectory. Throws when the gateway refuses. */
  seal(trajectoryId: string): Promise<void>;
  /** Puts weights in use from the next request on. Throws with the engine's words when it refuses them. */
  useWeights(dir: string, version: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts both and waits until they listen. When one of them cannot start, none stays. */
export async function startServices(options: { dir: string; weights: string; seed: number }): Promise<Services> {
  const engineLog = join(options.dir, "engine.ndjson");
  const capturedDir = join(options.dir, "captured");
  const keyFile = join(options.dir, "gateway.key");
  writeFileSync(keyFile, ADMIN_KEY, { mode: 0o600 });
  const engine = await start("engine", [
    ...["engine", "--weights", options.weights, "--seed", String(options.seed), "--log", engineLog],
  ]);
  const gateway = await start("gateway", [
    ...["sidecar", "--gateway", "--api-key-file", keyFile, "--upstream", engine.line.url!, "--model", "policy"],
    ...["--out", capturedDir, "--engine", "vllm", "--log-level", "warn", "--max-output-tokens", "64"],
  ]).catch(async (error: unknown) => {
    await stop(engine.child);
    throw error;
  });
  const origin = new URL(gateway.line.openai_base_url!).origin;
  return {
    engineLog,
    capturedDir,
    endpoint: (id) => ({ baseUrl: `${origin}/t/${id}/v1`, apiKey: trajectoryKey(id) }),
    seal: async (id) => {
      await post(`${origin}/t/${id}/seal`, {}, ADMIN_KEY);
    },
    useWeights: async (dir, version) => {
      await post(`${engine.line.url}/update_weights_from_disk`, { model_path: dir, weight_version: version });
    },
    close: async () => {
      await stop(gateway.child);
      await stop(engine.child);
    },
  };
}

/** As the gateway derives it from its admin key. */
function trajectoryKey(id: string): string {
  return `tito_${createHmac("sha256", ADMIN_KEY).update(id).digest("base64url")}`;
}

async function post(url: string, body: object, key?: string): Promise<void> {
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const headers = { "content-type": "application/json", ...authorization };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text}`);
}

interface Started {
  readonly child: ChildProcess;
  /** The JSON line that says where it listens. */
  readonly line: { readonly url?: string; readonly openai_base_url?: string };
}

async function start(name: string, args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [TITO, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout! })) {
    child.stdout!.resume();
    return { child, line: JSON.parse(line) as Started["line"] };
  }
  throw new Error(`the ${name} ended before it listened (exit code ${child.exitCode})`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise<void>((done) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    child.once("exit", () => {
      clearTimeout(timer);
      done();
    });
    child.kill("SIGTERM");
  });
}
