/** The frozen configuration of one sidecar: schema, defaults, and the redacted form that is stored with every trajectory. */

import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import type { ModelFacts } from "@tito/renderer";
import * as z from "zod/mini";

/** Trajectory ids become directory names; everything else about file names is made by us. */
export const TRAJECTORY_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Engines that have an adapter. */
export const ENGINES = ["vllm", "sglang", "fireworks", "llamacpp"] as const;
export type EngineKind = (typeof ENGINES)[number];

const id = z.string().check(z.regex(TRAJECTORY_ID, "must match [A-Za-z0-9_-]{1,64}"));
const label = z.string().check(z.minLength(1), z.maxLength(256));
const count = z.int().check(z.minimum(1), z.maximum(2 ** 31 - 1));
const milliseconds = z.int().check(z.minimum(0), z.maximum(86_400_000));

const schema = z.strictObject({
  /** Origin and optional path prefix of the engine, without /v1. */
  upstream: z.url({ protocol: /^https?$/, error: "must be an http or https URL" }),
  model: label,
  out: z.string().check(z.minLength(1)),
  engine: z._default(z.enum(["auto", ...ENGINES]), "auto"),
  /** `engine`, or the directory of a renderer bundle. */
  renderer: z._default(z.string(), "engine"),
  promptMode: z._default(z.enum(["full_history", "incremental"]), "full_history"),
  /** The junction's certificate; null: certificate.json inside the bundle. */
  certificate: z._default(z.nullable(z.string()), null),
  /** Fraction of the calls in incremental mode that are rendered in full as well. */
  shadowRender: z._default(z.number().check(z.minimum(0), z.maximum(1)), 0.05),
  /** Tell the engine's router which calls belong together and how long a prefix to expect. */
  routerHints: z._default(z.boolean(), true),
  /** Start although the engine renders a probe chat otherwise than the bundle. */
  allowRenderMismatch: z._default(z.boolean(), false),
  /** `neutral`, `engine`, or values for the fields that the harness omits, over neutral. */
  sampling: z._default(z.union([z.enum(["neutral", "engine"]), z.record(z.string(), z.number())]), "neutral"),
  logprobsMode: z._default(z.nullable(z.enum(["raw", "processed"])), null),
  weightVersion: z._default(z.nullable(label), null),
  /** Null: made at start, except in gateway mode, where requests name their own. */
  trajectoryId: z._default(z.nullable(id), null),
  runId: z._default(z.nullable(label), null),
  groupId: z._default(z.nullable(label), null),
  trialId: z._default(z.nullable(label), null),
  attempt: z._default(count, 1),
  metadata: z._default(z.record(z.string(), z.string()), {}),
  gateway: z._default(z.boolean(), false),
  /** Harness whose rule data may name volatile text and headers. */
  harness: z._default(z.nullable(label), null),
  host: z._default(label, "127.0.0.1"),
  port: z._default(z.int().check(z.minimum(0), z.maximum(65_535)), 0),
  /** Host header names accepted beside the loopback names; needed when `host` is not loopback. */
  allowedHosts: z._default(z.array(label), []),
  endpointFile: z._default(z.nullable(z.string()), null),
  maxContextTokens: z._default(z.nullable(count), null),
  maxOutputTokens: z._default(z.nullable(count), null),
  durability: z._default(z.enum(["fsync", "write"]), "fsync"),
  onUncaptured: z._default(z.enum(["fail", "flag"]), "fail"),
  orphanGraceMs: z._default(milliseconds, 30_000),
  sealTimeoutMs: z._default(milliseconds, 1_500),
  /** Silence after which a streamed answer is committed and kept alive. */
  keepaliveMs: z._default(milliseconds, 10_000),
  anchorFd: z._default(z.nullable(z.int().check(z.minimum(0))), null),
  secrets: z.strictObject({
    /** What the harness sends; in gateway mode the admin key. Null: made at start. */
    apiKey: z._default(z.nullable(z.string().check(z.minLength(8), z.maxLength(512))), null),
    /** Seals over HTTP. Null: only a signal seals. */
    ownerKey: z._default(z.nullable(z.string().check(z.minLength(8), z.maxLength(512))), null),
    upstreamKey: z._default(z.nullable(z.string().check(z.minLength(1), z.maxLength(4096))), null),
  }),
});

export type SidecarOptions = z.input<typeof schema>;
export type SidecarConfig = Readonly<z.output<typeof schema>>;

/**
 * Checks and freezes a configuration.
 * @throws TitoError `usage` that names the option.
 */
export function readConfig(options: SidecarOptions): SidecarConfig {
  const result = schema.safeParse(options);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const option = `--${issue.path
      .map(String)
      .join(".")
      .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw new TitoError("usage", `${option}: ${issue.message}`, { hint: "tito sidecar --help lists the options" });
  }
  const config = result.data;
  const url = new URL(config.upstream);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new TitoError("usage", "--upstream must be a plain URL: no user, password, query or fragment", {
      hint: "give the engine's key with --upstream-key-file",
    });
  }
  if (config.promptMode === "incremental" && config.renderer === "engine") {
    throw new TitoError(
      "usage",
      "--tito-prompt-mode incremental needs --renderer BUNDLE_DIR: the engine renders whole histories only",
    );
  }
  if (config.gateway && config.secrets.apiKey === null) {
    throw new TitoError("usage", "--gateway needs --api-key-file: its key creates trajectories");
  }
  return Object.freeze(config);
}

/** Canonical JSON of the configuration without secrets: what the journal header stores, and its SHA-256. */
export function redactConfig(config: SidecarConfig, model: ModelFacts | null): { json: string; sha256: Uint8Array } {
  const { secrets, ...open } = config;
  const held = Object.fromEntries(
    Object.entries(secrets).map(([key, value]) => [key, value === null ? null : "redacted"]),
  );
  const json = canonicalJson({ ...open, ...(model === null ? {} : { model_facts: model }), secrets: held });
  return { json, sha256: createHash("sha256").update(json).digest() };
}

/** JSON with sorted keys. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(",")}}`;
}
