/** Puts the parts together: engine, trajectories, server. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Disk, nodeDisk, TitoError } from "@tito/format";
import { readConfig, type SidecarConfig, type SidecarOptions } from "../config/config.js";
import {
  checkEndpointFile,
  type Endpoint,
  endpointOf,
  gatewayEndpoint,
  removeEndpointFile,
  writeEndpointFile,
} from "../config/endpoint.js";
import { createLog, type Log } from "../config/log.js";
import type { GateRules } from "../gate/gate.js";
import { type Engine, openEngine } from "../prompt/engine.js";
import { buildServer, SERVER_LIMITS } from "../server.js";
import { AnchorSink } from "../trajectory/anchor.js";
import { type SealReport, sealTrajectory } from "../trajectory/seal.js";
import type { Trajectory } from "../trajectory/trajectory.js";
import { TrajectoryTable } from "../trajectory/trajectory-table.js";

/** Written into every segment file. */
export const WRITER_VERSION = "tito 0.1.0";

export interface Sidecar {
  /** Where the harness finds it; a gateway's names no trajectory of its own. */
  endpoint: Endpoint;
  origin: string;
  /** Seals every trajectory, then stops listening. Repeated calls get the same answer; `hurry` aborts what is in flight. */
  close(reason: string): Promise<SealReport[]>;
  hurry(): void;
  /** Notes in every journal that this process is dying of a bug. Synchronous, best effort. */
  crashed(detail: string): void;
}

export interface SidecarHooks {
  log?: Log;
  hmacKey?: Uint8Array | null;
  /** Another disk than the machine's, for tests of what happens when it fails. */
  disk?: Disk;
  /** Other limits of the server than its own, for tests of what happens beyond them. */
  limits?: Partial<typeof SERVER_LIMITS>;
}

/**
 * Starts a sidecar: probes the engine, opens the trajectory, listens, writes the endpoint file.
 * Nothing is left behind when it fails. @throws TitoError, one clear line for each bad input.
 */
export async function startSidecar(options: SidecarOptions, hooks: SidecarHooks = {}): Promise<Sidecar> {
  const log = hooks.log ?? createLog((line) => void process.stderr.write(line));
  const config = identify(readConfig(options));
  if (config.endpointFile !== null) checkEndpointFile(config.endpointFile);
  const engine = await openEngine(config, log);
  const anchors = new AnchorSink(config.anchorFd, (detail) => log("warn", "anchor_not_written", { detail }));
  const onAnchor = (line: string): void => anchors.put(line);
  const table = new TrajectoryTable({
    config,
    model: engine.model,
    writerVersion: WRITER_VERSION,
    hmacKey: hooks.hmacKey ?? null,
    disk: hooks.disk ?? nodeDisk,
    onAnchor,
    log,
  });
  const limits = { ...SERVER_LIMITS, ...hooks.limits };
  const running = new Running({ config, engine, table, anchors, log, limits });
  try {
    await running.start();
  } catch (error) {
    await running.abandon();
    throw error;
  }
  return running;
}

function identify(config: SidecarConfig): SidecarConfig {
  const trajectoryId = config.trajectoryId ?? `t-${randomUUID()}`;
  const runId = config.runId ?? (config.gateway ? null : `r-${randomUUID()}`);
  return Object.freeze({ ...config, trajectoryId, runId });
}

interface RunningParts {
  config: SidecarConfig;
  engine: Engine;
  table: TrajectoryTable;
  anchors: AnchorSink;
  log: Log;
  limits: typeof SERVER_LIMITS;
}

class Running implements Sidecar {
  endpoint!: Endpoint;
  origin = "";
  private readonly server: Server;
  private closing: Promise<SealReport[]> | null = null;
  private hurried = false;
  private readonly seals = new Map<Trajectory, Promise<SealReport>>();
  /** Known once it listens. */
  private rules!: GateRules;

  private readonly config: SidecarConfig;
  private readonly engine: Engine;
  private readonly table: TrajectoryTable;
  private readonly anchors: AnchorSink;
  private readonly log: Log;

  constructor(parts: RunningParts) {
    this.config = parts.config;
    this.engine = parts.engine;
    this.table = parts.table;
    this.anchors = parts.anchors;
    this.log = parts.log;
    const answers = {
      origin: () => this.origin,
      seal: (trajectory: Trajectory) => this.seal(trajectory, "owner"),
      notReady: () => this.notReady(),
    };
    this.server = buildServer({ ...parts, ...answers }, () => this.rules);
  }

  async start(): Promise<void> {
    const { config } = this;
    const apiKey = config.secrets.apiKey ?? `tito_${randomBytes(32).toString("base64url")}`;
    await listen(this.server, config);
    const { port } = this.server.address() as AddressInfo;
    this.rules = gateRules(config, port);
    this.origin = `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${port}`;
    if (!config.gateway) await this.table.create(config.trajectoryId!, apiKey);
    const { profile, contextTokens } = this.engine;
    this.endpoint = config.gateway
      ? gatewayEndpoint(this.origin, apiKey, contextTokens)
      : endpointOf(this.origin, config.trajectoryId!, { apiKey, contextTokens });
    if (config.endpointFile !== null) writeEndpointFile(config.endpointFile, this.endpoint);
    this.log("info", "listening", {
      origin: this.origin,
      model: config.model,
      engine_version: profile.version,
      logprobs: profile.logprobMode,
      streams_ids: profile.streamsIds,
    });
  }

  close(reason: string): Promise<SealReport[]> {
    this.closing ??= this.closeAll(reason);
    return this.closing;
  }

  hurry(): void {
    this.hurried = true;
    void this.table.all().then((all) => all.forEach((one) => void one.abortCalls()));
  }

  crashed(detail: string): void {
    for (const trajectory of this.table.opened) {
      try {
        trajectory.writer.writeJournal("lifecycle", {
          event: "crash",
          detail: detail.slice(0, 4000),
          at_ms: Date.now(),
        });
      } catch {
        // The process is dying: whatever can be written is written.
      }
    }
  }

  /** Undoes a start that failed. */
  async abandon(): Promise<void> {
    this.server.close();
    this.server.closeAllConnections();
    for (const trajectory of await this.table.all()) await trajectory.seal("start_failed", 0).catch(() => undefined);
    this.engine.close();
  }

  private async closeAll(reason: string): Promise<SealReport[]> {
    this.table.closing = true;
    const seals = (await this.table.all()).map((trajectory) => this.seal(trajectory, reason));
    const settled = await Promise.allSettled(seals);
    await this.anchors.flushed();
    if (this.config.endpointFile !== null) removeEndpointFile(this.config.endpointFile);
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeIdleConnections();
      setTimeout(() => this.server.closeAllConnections(), 200).unref();
    });
    this.engine.close();
    // One that can not be sealed neither keeps the others from it nor the process from ending.
    return settled.map((one) => {
      if (one.status === "rejected") throw one.reason;
      return one.value;
    });
  }

  private seal(trajectory: Trajectory, reason: string): Promise<SealReport> {
    const known = this.seals.get(trajectory);
    if (known !== undefined) return known;
    const sealing = sealTrajectory(trajectory, {
      reason,
      timeoutMs: this.hurried ? 0 : this.config.sealTimeoutMs,
      idClosed: this.table.closeId(trajectory.id),
    });
    this.seals.set(trajectory, sealing);
    sealing.then(
      (report) => {
        this.log("info", "sealed", { trajectory: report.trajectory_id, status: report.status, turns: report.turns });
        this.table.forget(trajectory);
        if (this.config.gateway) this.seals.delete(trajectory);
      },
      (error: unknown) => this.log("error", "seal_failed", { trajectory: trajectory.id, detail: String(error) }),
    );
    return sealing;
  }

  private async notReady(): Promise<string | null> {
    if (this.table.closing) return "sealing";
    const all = await this.table.all();
    const degraded = all.find((trajectory) => trajectory.degraded !== null);
    if (degraded !== undefined) return `capture is degraded: ${degraded.degraded}`;
    return !this.config.gateway && all.every((trajectory) => trajectory.phase !== "open") ? "sealed" : null;
  }
}

function gateRules({ host, allowedHosts }: SidecarConfig, port: number): GateRules {
  const names = ["127.0.0.1", "localhost", "[::1]", host, ...allowedHosts];
  const hosts = names.flatMap((name) => [
    `${name.toLowerCase()}:${port}`,
    ...(allowedHosts.includes(name) ? [name.toLowerCase()] : []),
  ]);
  return { hosts: new Set(hosts), anyAddress: !isLoopback(host) };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}

function listen(server: Server, config: SidecarConfig): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const inUse = cause.code === "EADDRINUSE";
      reject(
        new TitoError(
          inUse ? "address_in_use" : "usage",
          `cannot listen on ${config.host} port ${config.port}: ${cause.code ?? cause.message}`,
          {
            cause,
            hint: inUse ? "use --port 0 for a free one" : "check --host and --port",
          },
        ),
      );
    });
    server.listen(config.port, config.host, () => {
      server.removeAllListeners("error");
      resolve();
    });
  });
}
