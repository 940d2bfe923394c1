/** The flags of `tito sidecar` and `tito run`: one declarative list, from which the command line is built, read, and handed to a child. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { TitoError } from "@tito/format";
import { ENGINES, type SidecarOptions } from "./config.js";
import { LOG_LEVELS, type LogLevel } from "./log.js";

export interface FlagSpec {
  /** Without the dashes. */
  name: string;
  /** Placeholder of the value; null for a switch. */
  value: string | null;
  description: string;
  /** May be given more than once. */
  repeat?: true;
  required?: true;
  /** Only `tito run` has it. */
  runOnly?: true;
  /** Between our own processes; not shown in help. */
  internal?: true;
}

/** Flag name → its values as given, in order. A switch that is on has one empty value. */
export type FlagValues = ReadonlyMap<string, readonly string[]>;

export const SIDECAR_FLAGS: readonly FlagSpec[] = [
  { name: "upstream", value: "URL", description: "the inference engine, with or without /v1", required: true },
  { name: "model", value: "ID", description: "the model that every call is answered by", required: true },
  { name: "out", value: "DIR", description: "directory that gets <trajectory>/", required: true },
  { name: "engine", value: "KIND", description: `auto or ${ENGINES.join(", ")} (default auto)` },
  { name: "renderer", value: "engine|BUNDLE_DIR", description: "who renders prompts (default engine)" },
  { name: "tito-prompt-mode", value: "MODE", description: "full_history (default) or incremental" },
  {
    name: "certificate",
    value: "FILE",
    description: "what tito certify found out; incremental mode needs it (default: certificate.json in BUNDLE_DIR)",
  },
  {
    name: "shadow-render",
    value: "FRACTION",
    description: "of the calls in incremental mode, rendered in full as well and compared (default 0.05)",
  },
  {
    name: "allow-render-mismatch",
    value: null,
    description: "start although the engine renders otherwise than BUNDLE_DIR",
  },
  {
    name: "no-router-hints",
    value: null,
    description: "no headers that tell a router the session and the expected prefix",
  },
  {
    name: "sampling",
    value: "neutral|engine|K=V",
    description: "fields that the harness omits (default neutral)",
    repeat: true,
  },
  {
    name: "logprobs-mode",
    value: "raw|processed",
    description: "what the engine's log probabilities are (default: probed)",
  },
  { name: "weight-version", value: "NAME", description: "version of the weights, where the engine does not tell" },
  { name: "trajectory-id", value: "ID", description: "[A-Za-z0-9_-]{1,64} (default: made)" },
  { name: "run-id", value: "ID", description: "id of the rollout (default: made)" },
  { name: "group-id", value: "ID", description: "id of the group that the rollout is compared in" },
  { name: "trial-id", value: "ID", description: "id of the trial" },
  { name: "attempt", value: "N", description: "attempt of the trial (default 1)" },
  { name: "metadata", value: "K=V", description: "anything to keep with the trajectory", repeat: true },
  {
    name: "harness",
    value: "NAME",
    description: "whose rules tell auxiliary calls apart (default: by its user agent)",
  },
  { name: "host", value: "ADDRESS", description: "listen address (default 127.0.0.1)" },
  { name: "port", value: "N", description: "listen port (default 0: any free one)" },
  {
    name: "allowed-host",
    value: "NAME",
    description: "further Host header names, needed beyond loopback",
    repeat: true,
  },
  { name: "endpoint-file", value: "FILE", description: "gets the endpoint once connections are accepted" },
  { name: "api-key-file", value: "FILE", description: "the harness's key (default: made)" },
  { name: "owner-key-file", value: "FILE", description: "the key that seals over HTTP (default: only signals seal)" },
  { name: "upstream-key-file", value: "FILE", description: "the engine's key" },
  { name: "hmac-key-file", value: "FILE", description: "key for keyed record digests" },
  { name: "anchor-fd", value: "N", description: "descriptor that gets the chain head after each turn and at the seal" },
  {
    name: "max-context-tokens",
    value: "N",
    description: "refuse longer prompts; with the engine source this asks its /tokenize first",
  },
  { name: "max-output-tokens", value: "N", description: "upper limit of every answer" },
  { name: "durability", value: "fsync|write", description: "what an answer waits for (default fsync)" },
  {
    name: "on-uncaptured",
    value: "fail|flag",
    description: "what happens to calls that can not be recorded (default fail)",
  },
  {
    name: "orphan-grace",
    value: "SECONDS",
    description: "how long an engine works for a harness that has gone (default 30)",
  },
  { name: "seal-timeout", value: "SECONDS", description: "how long a seal waits for calls in flight (default 1.5)" },
  {
    name: "log-level",
    value: "info|warn|error",
    description: "least level on standard error (default info; tito run: warn)",
  },
  { name: "gateway", value: null, description: "serve many trajectories; the api key creates them" },
  { name: "agent-user", value: "NAME", description: "start COMMAND under this user (needs root)", runOnly: true },
  {
    name: "parent-fd",
    value: "N",
    description: "descriptor of the starting process: keys come in, its end seals",
    internal: true,
  },
];

/**
 * Reads flags up to `--` or the first word that is none.
 * @throws TitoError `usage`.
 */
export function parseFlags(args: readonly string[]): { flags: FlagValues; rest: string[] } {
  const specs = Object.fromEntries(
    SIDECAR_FLAGS.map((flag) => [
      flag.name,
      flag.value === null ? { type: "boolean" as const } : { type: "string" as const, multiple: true },
    ]),
  );
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  try {
    const { values } = parseArgs({ args: [...own], options: specs, strict: true, allowPositionals: false });
    const flags = new Map(
      Object.entries(values).map(([name, value]) => [name, Array.isArray(value) ? value.map(String) : [""]]),
    );
    return { flags, rest: end < 0 ? [] : args.slice(end + 1) };
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new TitoError("usage", message.charAt(0).toLowerCase() + message.slice(1), {
      cause,
      hint: "--help lists the options",
    });
  }
}

/** The same flags as arguments of a child. */
export function flagArguments(flags: FlagValues): string[] {
  return [...flags].flatMap(([name, values]) => {
    const spec = SIDECAR_FLAGS.find((flag) => flag.name === name);
    return values.map((value) => (spec?.value === null ? `--${name}` : `--${name}=${value}`));
  });
}

/** Keys as they come from files, or from the starting process. */
export interface Secrets {
  apiKey: string | null;
  ownerKey: string | null;
  upstreamKey: string | null;
  hmacKey: string | null;
}

/** Reads the key files. @throws TitoError `usage` that names the flag, never the key. */
export function readSecrets(flags: FlagValues): Secrets {
  const key = (name: string): string | null => {
    const file = one(flags, name);
    if (file === null) return null;
    let text: string;
    try {
      text = readFileSync(file, "utf8").trim();
    } catch (cause) {
      throw new TitoError("usage", `--${name}: cannot read ${file}: ${(cause as NodeJS.ErrnoException).code}`, {
        cause,
      });
    }
    if (text === "" || /\s/.test(text))
      throw new TitoError("usage", `--${name}: ${file} must hold one key on one line`);
    return text;
  };
  return {
    apiKey: key("api-key-file"),
    ownerKey: key("owner-key-file"),
    upstreamKey: key("upstream-key-file"),
    hmacKey: key("hmac-key-file"),
  };
}

/** Flags as options; only those that were given. @throws TitoError `usage`. */
export function optionsFromFlags(flags: FlagValues, secrets: Secrets): SidecarOptions {
  const missing = SIDECAR_FLAGS.find((flag) => flag.required === true && one(flags, flag.name) === null);
  if (missing !== undefined)
    throw new TitoError("usage", `--${missing.name} ${missing.value} is missing`, {
      hint: "tito sidecar --help lists the options",
    });
  const given: [keyof SidecarOptions, unknown][] = [
    ["engine", engineKind(one(flags, "engine"))],
    ["renderer", one(flags, "renderer")],
    ["promptMode", one(flags, "tito-prompt-mode")],
    ["certificate", one(flags, "certificate")],
    ["shadowRender", fractionOf(flags, "shadow-render")],
    ["routerHints", flags.has("no-router-hints") ? false : null],
    ["allowRenderMismatch", flags.has("allow-render-mismatch") ? true : null],
    ["sampling", samplingPolicy(flags.get("sampling"))],
    ["logprobsMode", one(flags, "logprobs-mode")],
    ["weightVersion", one(flags, "weight-version")],
    ["trajectoryId", one(flags, "trajectory-id")],
    ["runId", one(flags, "run-id")],
    ["groupId", one(flags, "group-id")],
    ["trialId", one(flags, "trial-id")],
    ["attempt", numberOf(flags, "attempt")],
    ["metadata", Object.fromEntries(pairs("metadata", flags.get("metadata") ?? []))],
    ["harness", one(flags, "harness")],
    ["host", one(flags, "host")],
    ["port", numberOf(flags, "port")],
    ["allowedHosts", flags.get("allowed-host") ?? null],
    ["endpointFile", one(flags, "endpoint-file")],
    ["anchorFd", numberOf(flags, "anchor-fd")],
    ["maxContextTokens", numberOf(flags, "max-context-tokens")],
    ["maxOutputTokens", numberOf(flags, "max-output-tokens")],
    ["durability", one(flags, "durability")],
    ["onUncaptured", one(flags, "on-uncaptured")],
    ["orphanGraceMs", seconds(flags, "orphan-grace")],
    ["sealTimeoutMs", seconds(flags, "seal-timeout")],
    ["gateway", flags.has("gateway") ? true : null],
  ];
  const { apiKey, ownerKey, upstreamKey } = secrets;
  return {
    ...(Object.fromEntries(given.filter(([, value]) => value !== null)) as Partial<SidecarOptions>),
    upstream: one(flags, "upstream")!,
    model: one(flags, "model")!,
    out: one(flags, "out")!,
    secrets: { apiKey, ownerKey, upstreamKey },
  };
}

/** @throws TitoError `usage`. */
export function logLevel(flags: FlagValues): LogLevel {
  const text = one(flags, "log-level") ?? "info";
  const level = LOG_LEVELS.find((known) => known === text);
  if (level === undefined) throw new TitoError("usage", `--log-level ${text}: one of ${LOG_LEVELS.join(", ")}`);
  return level;
}

/** The last value of a flag: like everywhere, a later flag overrides an earlier one. */
export function one(flags: FlagValues, name: string): string | null {
  return flags.get(name)?.at(-1) ?? null;
}

function engineKind(kind: string | null): string | null {
  const known: readonly string[] = ["auto", ...ENGINES];
  if (kind === null || known.includes(kind)) return kind;
  throw new TitoError("usage", `--engine ${kind} has no adapter`, { hint: `these work: ${known.join(", ")}` });
}

function samplingPolicy(values: readonly string[] | undefined): unknown {
  if (values === undefined) return null;
  if (values.length === 1 && (values[0] === "neutral" || values[0] === "engine")) return values[0];
  const entries = pairs("sampling", values).map(([key, text]): [string, number] => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value))
      throw new TitoError("usage", `--sampling ${key}=${text}: not a number`);
    return [key, value];
  });
  return Object.fromEntries(entries);
}

function pairs(name: string, values: readonly string[]): [string, string][] {
  return values.map((text) => {
    const equals = text.indexOf("=");
    if (equals < 1) throw new TitoError("usage", `--${name} ${text}: expected K=V`);
    return [text.slice(0, equals), text.slice(equals + 1)];
  });
}

function numberOf(flags: FlagValues, name: string): number | null {
  const text = one(flags, name);
  if (text === null) return null;
  if (!/^\d{1,10}$/.test(text)) throw new TitoError("usage", `--${name} ${text}: not a whole number`);
  return Number(text);
}

function fractionOf(flags: FlagValues, name: string): number | null {
  const text = one(flags, name);
  if (text === null) return null;
  const value = Number(text);
  if (text.trim() !== "" && value >= 0 && value <= 1) return value;
  throw new TitoError("usage", `--${name} ${text}: not a number from 0 to 1`);
}

function seconds(flags: FlagValues, name: string): number | null {
  const text = one(flags, name);
  if (text === null) return null;
  const match = /^(\d+(?:\.\d+)?)s?$/.exec(text);
  if (match === null) throw new TitoError("usage", `--${name} ${text}: expected seconds`);
  return Math.round(Number(match[1]) * 1000);
}
