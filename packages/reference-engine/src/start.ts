import { rename, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { TitoError } from "@tito/format";
import { loadEngine } from "./engine.js";
import { createApp } from "./http/server.js";
import { type EngineOptions, type ResolvedOptions, resolveOptions } from "./options.js";

/** An engine that accepts connections. */
export interface RunningEngine {
  /** `http://host:port`, without `/v1`. */
  url: string;
  port: number;
  /** Breaks off what is running and frees the port. */
  close(): Promise<void>;
}

/** Starts the embedded inference server. Throws a TitoError for missing weights, a bad script, a taken port or a file that cannot be written. */
export async function startEngine(options: EngineOptions = {}): Promise<RunningEngine> {
  const resolved = resolveOptions(options);
  const engine = await loadEngine(resolved);
  const server = createAdaptorServer({ fetch: createApp(engine).fetch, overrideGlobalObjects: false }) as Server;
  // Long generations are normal; nobody but the client decides when one is given up.
  server.requestTimeout = 0;
  const port = await listen(server, resolved);
  const url = `http://${resolved.host.includes(":") ? `[${resolved.host}]` : resolved.host}:${port}`;
  const close = () => closeServer(server);
  try {
    if (resolved.endpointFile !== null) await writeEndpoint(resolved.endpointFile, resolved, url, port);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, port, close };
}

async function listen(server: Server, { host, port }: ResolvedOptions): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === "EADDRINUSE";
      reject(
        new TitoError(
          taken ? "address_in_use" : "io",
          taken ? `engine: ${host}:${port} is taken` : `engine: cannot listen on ${host}:${port}: ${cause.message}`,
          { cause, hint: "choose another --port, or 0 for any free one" },
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function writeEndpoint(file: string, { host, model }: ResolvedOptions, url: string, port: number): Promise<void> {
  const text = `${JSON.stringify({ schema: "tito.engine_endpoint/v1", pid: process.pid, url, host, port, model })}\n`;
  try {
    await writeFile(`${file}.tmp`, text);
    await rename(`${file}.tmp`, file);
  } catch (cause) {
    throw new TitoError("cannot_write", `engine: cannot write the endpoint file ${file}`, { cause });
  }
}
