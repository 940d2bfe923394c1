/**
 * Stop 1, who may speak. Pure checks on a request line and its headers, before a byte of the body is read:
 * the Host header (DNS rebinding), the Origin header, an exact path table (nothing is ever resolved against the upstream URL),
 * a bearer that names its trajectory, JSON in an encoding that can be read.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { type Dialect, sha256, TitoError } from "@tito/format";
import { TRAJECTORY_ID } from "../config/config.js";
import { bodyEncodings } from "./encodings.js";

/** What a path asks for. Trajectory ids are checked by shape here and by key later. */
export type Route =
  | { kind: "healthz" | "readyz" }
  | { kind: "call"; trajectoryId: string; dialect: Exclude<Dialect, "completions"> }
  | { kind: "completions"; trajectoryId: string }
  | { kind: "count_tokens"; trajectoryId: string }
  | { kind: "models"; trajectoryId: string }
  | { kind: "model"; trajectoryId: string; modelId: string }
  | { kind: "seal"; trajectoryId: string }
  | { kind: "create"; trajectoryId: string };

export interface GateRequest {
  method: string;
  /** The request target as it came, query included. */
  target: string;
  /** Name, value, name, value, …, as it came. */
  rawHeaders: readonly string[];
}

export interface GateRules {
  /** `name:port` as the Host header spells it, lower case. */
  hosts: ReadonlySet<string>;
  /** An address literal can not be rebound; accepted when the sidecar listens beyond loopback. */
  anyAddress: boolean;
}

const LEAVES: ReadonlyMap<string, { method: string; route: (trajectoryId: string) => Route }> = new Map([
  ["", { method: "POST", route: (trajectoryId) => ({ kind: "create", trajectoryId }) }],
  ["/seal", { method: "POST", route: (trajectoryId) => ({ kind: "seal", trajectoryId }) }],
  ["/v1/models", { method: "GET", route: (trajectoryId) => ({ kind: "models", trajectoryId }) }],
  [
    "/v1/chat/completions",
    { method: "POST", route: (trajectoryId) => ({ kind: "call", trajectoryId, dialect: "chat" }) },
  ],
  ["/v1/completions", { method: "POST", route: (trajectoryId) => ({ kind: "completions", trajectoryId }) }],
  [
    "/v1/responses",
    { method: "POST", route: (trajectoryId) => ({ kind: "call", trajectoryId, dialect: "responses" }) },
  ],
  ["/v1/messages", { method: "POST", route: (trajectoryId) => ({ kind: "call", trajectoryId, dialect: "messages" }) }],
  ["/v1/messages/count_tokens", { method: "POST", route: (trajectoryId) => ({ kind: "count_tokens", trajectoryId }) }],
]);
const ROOTS: ReadonlyMap<string, Route> = new Map([
  ["/healthz", { kind: "healthz" }],
  ["/readyz", { kind: "readyz" }],
]);
/** Model ids hold slashes, encoded or not. */
const MODEL = /^\/t\/([^/?#]*)\/v1\/models\/([^?#]+)$/;
const TARGET = /^\/t\/([^/?#]*)((?:\/[a-z0-9_/]*)?)$/;
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])(?::\d+)?$/;

/**
 * Decides where a request goes.
 * @throws TitoError `forbidden_host`, `not_found`, `method_not_allowed`, `unsupported_media_type` or `bad_request`.
 */
export function admit(request: GateRequest, rules: GateRules): Route {
  const headers = headerMap(request.rawHeaders);
  checkHost(headers, rules);
  if (headers.has("origin"))
    throw new TitoError("forbidden_host", "requests from a web page are refused (Origin header)");
  if (headers.has("upgrade")) throw new TitoError("bad_request", "protocol upgrades are not offered");
  const route = routeOf(request);
  if (request.method !== "POST") return route;
  bodyEncodings(headers.get("content-encoding")?.join(","));
  const needsBody = route.kind === "call" || route.kind === "completions" || route.kind === "count_tokens";
  const type = (headers.get("content-type") ?? []).join(",").split(";")[0]!.trim().toLowerCase();
  if (needsBody && type !== "application/json") {
    throw new TitoError("unsupported_media_type", "the body must be application/json");
  }
  return route;
}

/** Lower-case header name → values. A map, because names come from outside. */
export function headerMap(rawHeaders: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const values = headers.get(name);
    if (values === undefined) headers.set(name, [rawHeaders[index + 1]!]);
    else values.push(rawHeaders[index + 1]!);
  }
  return headers;
}

/** The key that a request carries: `Authorization: Bearer` or, as Anthropic's clients send it, `x-api-key`. Null: none, or two that differ. */
export function bearerOf(headers: ReadonlyMap<string, readonly string[]>): string | null {
  const bearers = (headers.get("authorization") ?? []).map((value) => /^bearer +(\S+)$/i.exec(value.trim())?.[1] ?? "");
  const keys = new Set([...bearers, ...(headers.get("x-api-key") ?? [])]);
  const [key] = keys;
  return keys.size === 1 && key !== undefined && key !== "" ? key : null;
}

/** Digest under which a key is kept: comparing digests takes the same time whatever the key's length. */
export function keyDigest(key: string): Buffer {
  return sha256(key);
}

/** Constant-time comparison of a presented key with a kept digest. */
export function keyMatches(presented: string | null, digest: Buffer): boolean {
  return timingSafeEqual(keyDigest(presented ?? ""), digest) && presented !== null;
}

/** A gateway's key for one trajectory: whoever holds the admin key can compute it, nobody else. */
export function trajectoryKey(adminKey: string, trajectoryId: string): string {
  return `tito_${createHmac("sha256", adminKey).update(trajectoryId).digest("base64url")}`;
}

function checkHost(headers: ReadonlyMap<string, readonly string[]>, rules: GateRules): void {
  const hosts = headers.get("host") ?? [];
  const host = hosts[0]?.toLowerCase();
  if (hosts.length !== 1 || host === undefined)
    throw new TitoError("forbidden_host", "exactly one Host header is needed");
  if (rules.hosts.has(host) || (rules.anyAddress && ADDRESS.test(host))) return;
  throw new TitoError("forbidden_host", "the Host header does not name this sidecar", {
    hint: "use the base URL of the endpoint file, or start with --allowed-host",
  });
}

function routeOf(request: GateRequest): Route {
  const query = request.target.indexOf("?");
  const path = query < 0 ? request.target : request.target.slice(0, query);
  const root = ROOTS.get(path);
  if (root !== undefined) return allowMethod(request.method, "GET", root);
  const model = MODEL.exec(path);
  if (model !== null && TRAJECTORY_ID.test(model[1]!)) {
    return allowMethod(request.method, "GET", { kind: "model", trajectoryId: model[1]!, modelId: decoded(model[2]!) });
  }
  const match = TARGET.exec(path);
  const leaf = match === null ? undefined : LEAVES.get(match[2]!);
  if (match === null || leaf === undefined || !TRAJECTORY_ID.test(match[1]!)) {
    throw new TitoError("not_found", "no such route", { hint: "use the base URL of the endpoint file" });
  }
  return allowMethod(request.method, leaf.method, leaf.route(match[1]!));
}

/** What is no percent-encoding stays as it is: no model is called so. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function allowMethod(method: string, allowed: string, route: Route): Route {
  if (method === allowed || (method === "HEAD" && allowed === "GET")) return route;
  throw new TitoError("method_not_allowed", `this route takes ${allowed} only`);
}
