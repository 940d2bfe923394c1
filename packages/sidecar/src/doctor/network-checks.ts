/** Can a harness reach a sidecar here, and a sidecar the engine? */
import { connect, createServer } from "node:net";
import { TitoError } from "@tito/format";
import { readConfig } from "../config/config.js";
import { probeEngine } from "../engine-adapter/probe.js";
import { openUpstream } from "../sample/upstream.js";
import { type Finding, finding, reasonOf } from "./finding.js";

/** Listens on loopback, and is reached. */
export async function checkLoopback(host: string): Promise<Finding> {
  const server = createServer((socket) => socket.end("tito"));
  try {
    const port = await new Promise<number>((resolve, reject) => {
      server.on("error", reject);
      server.listen(0, host, () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, host);
      let got = "";
      socket.on("data", (bytes) => {
        got += bytes.toString("latin1");
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(got));
    });
    if (text !== "tito") throw new Error(`something else answers on ${host}:${port}`);
    return finding("loopback", "ok", `${host} can be listened on and reached`);
  } catch (error) {
    return finding("loopback", "failure", `${host}: ${reasonOf(error)}`, "a harness could not reach the sidecar");
  } finally {
    server.close();
  }
}

const LOCAL = ["127.0.0.1", "localhost"];

/** A proxy in the environment would get the harness's calls to the sidecar, key included. */
export function judgeProxy(env: Readonly<Record<string, string | undefined>>): Finding {
  const read = (name: string): string => env[name] ?? env[name.toLowerCase()] ?? "";
  const proxy = ["HTTP_PROXY", "ALL_PROXY"].find((name) => read(name) !== "");
  if (proxy === undefined) return finding("proxy", "ok", "no HTTP proxy in the environment");
  const exempt = read("NO_PROXY")
    .split(",")
    .map((name) => name.trim());
  if (exempt.includes("*") || LOCAL.every((name) => exempt.includes(name))) {
    return finding("proxy", "ok", `${proxy} is set, and NO_PROXY exempts loopback`);
  }
  return finding(
    "proxy",
    "warning",
    `${proxy} is set, and NO_PROXY does not exempt loopback`,
    `NO_PROXY=${LOCAL.join(",")}: else harnesses send their calls to the proxy`,
  );
}

export interface EngineTarget {
  upstream: string;
  /** Null: only its list of models is asked for. */
  model: string | null;
  upstreamKey: string | null;
}

/** With a model, the probe that a sidecar makes at its start; it samples a few tokens. */
export async function checkEngine({ upstream: url, model, upstreamKey }: EngineTarget): Promise<Finding> {
  const config = readConfig({ upstream: url, model: model ?? "?", out: "?", secrets: { upstreamKey } });
  const upstream = openUpstream(url, upstreamKey);
  try {
    if (model === null) {
      const response = await upstream.send({ method: "GET", path: "/v1/models" });
      await response.text();
      if (response.status === 200) return finding("engine", "ok", `${upstream.base} answers (--model probes for ids)`);
      return finding(
        "engine",
        "failure",
        `${upstream.base}/v1/models answers with ${response.status}`,
        "check --upstream and --upstream-key-file",
      );
    }
    const { kind, version, logprobMode, streamsIds } = await probeEngine(upstream, config);
    const message = `${kind} ${version ?? "of an unknown version"} serves ${model} with ids and ${logprobMode} log probabilities`;
    if (streamsIds) return finding("engine", "ok", message);
    return finding(
      "engine",
      "warning",
      `${message}, but not while streaming`,
      "calls are made unstreamed and emitted as few deltas",
    );
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    return finding("engine", "failure", error.message, error.hint ?? null);
  } finally {
    upstream.close();
  }
}

/** The host of a URL stands for this machine. */
export function isLocalUrl(url: string): boolean {
  const { hostname } = new URL(url);
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0)$/.test(hostname);
}
