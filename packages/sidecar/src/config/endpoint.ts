/** The endpoint file: how a harness, or whoever starts it, learns the address and the key. Written atomically, readable by its owner only. */
import { randomBytes } from "node:crypto";
import { accessSync, closeSync, constants, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { TitoError } from "@tito/format";

/** Schema `tito.endpoint/v1`. */
export interface Endpoint {
  schema: "tito.endpoint/v1";
  pid: number;
  trajectory_id: string;
  openai_base_url: string;
  anthropic_base_url: string;
  api_key: string;
  /** Longest prompt and answer together, in tokens: the least of what the engine tells and `--max-context-tokens`. Null: nobody says. */
  context_tokens: number | null;
}

/** `origin` is `http://host:port`. */
export function endpointOf(
  origin: string,
  trajectoryId: string,
  facts: { apiKey: string; contextTokens: number | null },
): Endpoint {
  const base = `${origin}/t/${trajectoryId}`;
  return {
    schema: "tito.endpoint/v1",
    pid: process.pid,
    trajectory_id: trajectoryId,
    openai_base_url: `${base}/v1`,
    anthropic_base_url: base,
    api_key: facts.apiKey,
    context_tokens: facts.contextTokens,
  };
}

/** A gateway's endpoint names no trajectory: `/t/<trajectory>` goes behind its base URLs. Its key is the admin key. */
export function gatewayEndpoint(origin: string, adminKey: string, contextTokens: number | null): Endpoint {
  return {
    schema: "tito.endpoint/v1",
    pid: process.pid,
    trajectory_id: "",
    openai_base_url: origin,
    anthropic_base_url: origin,
    api_key: adminKey,
    context_tokens: contextTokens,
  };
}

/**
 * Writes `file` so that a reader sees all of it or nothing.
 * @throws TitoError `cannot_write`.
 */
export function writeEndpointFile(file: string, endpoint: Endpoint): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const fd = openSync(temporary, flags, 0o600);
    try {
      writeSync(fd, `${JSON.stringify(endpoint)}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, file);
  } catch (cause) {
    tryUnlink(temporary);
    throw new TitoError("cannot_write", `cannot write the endpoint file ${file}: ${errorCode(cause)}`, { cause });
  }
}

/** Fails early where the file could not be written later: before a trajectory was begun. @throws TitoError `cannot_write`. */
export function checkEndpointFile(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (cause) {
    throw new TitoError("cannot_write", `cannot write the endpoint file ${file}: ${errorCode(cause)}`, { cause });
  }
}

/** Takes the file away again; a file that is already gone is fine. */
export function removeEndpointFile(file: string): void {
  tryUnlink(file);
}

function tryUnlink(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // Already gone.
  }
}

function errorCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
