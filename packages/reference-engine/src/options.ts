import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TitoError } from "@tito/format";

/** Where vLLM's `--logprobs-mode` takes the log probability of a sampled token: before or after temperature, penalties and filters. */
export type LogprobsMode = "raw" | "processed";

/** How to start the embedded engine. Every field has a default; the command line gives one flag for each. */
export interface EngineOptions {
  /** A complete Hugging Face model directory. Default: the policy in this repository's `fixtures/policy`. */
  weights?: string;
  /** `lm` (default): the model samples. `script:FILE`: the answers of a script, for tests of harnesses. */
  policy?: string;
  /** Default 127.0.0.1. */
  host?: string;
  /** Default 0: the system picks a free one. */
  port?: number;
  /** Of the draws of requests without a seed of their own. Default 0. */
  seed?: number;
  /** The model id that `/v1/models` lists and requests must name. Default: `policy`. */
  model?: string;
  /** Prompt and sampled tokens together. Default: of `config.json`; with a script 262144. */
  maxModelLen?: number;
  /** Default `processed`, so that the reported values are those of the distribution that was sampled from. vLLM's own default is raw. */
  logprobsMode?: LogprobsMode;
  /** Opens the `/test/*` routes: faults, holds, weight versions, the request log. Default false. */
  testMode?: boolean;
  /** NDJSON file that gets one line for each finished choice: exactly the prompt ids seen and the ids and log probabilities sampled. */
  logFile?: string;
  /** Gets `{schema, pid, url, host, port, model}` once connections are accepted; written atomically. */
  endpointFile?: string;
  /** Wait before each sampled token. Default 0. */
  tokenDelayMs?: number;
  /** Reports `usage.prompt_tokens_details.cached_tokens` as a prefix cache over earlier prompts would. Default false, as in vLLM. */
  promptTokensDetails?: boolean;
}

/** The options with every default in place. */
export interface ResolvedOptions {
  weights: string;
  scriptFile: string | null;
  host: string;
  port: number;
  seed: number;
  model: string;
  maxModelLen: number | null;
  logprobsMode: LogprobsMode;
  testMode: boolean;
  logFile: string | null;
  endpointFile: string | null;
  tokenDelayMs: number;
  promptTokensDetails: boolean;
}

/** Fills in the defaults. Throws `usage` for a value that cannot be meant. */
export function resolveOptions(options: EngineOptions): ResolvedOptions {
  const policy = options.policy ?? "lm";
  if (policy !== "lm" && !policy.startsWith("script:")) {
    throw new TitoError("usage", `engine: no policy is called "${policy}"`, { hint: "use lm or script:FILE" });
  }
  const mode: string = options.logprobsMode ?? "processed";
  if (mode !== "raw" && mode !== "processed") {
    throw new TitoError("usage", `engine: no logprobs mode is called "${mode}"`, { hint: "use raw or processed" });
  }
  return {
    weights: options.weights ?? defaultWeightsDir(),
    scriptFile: policy === "lm" ? null : policy.slice("script:".length),
    host: options.host ?? "127.0.0.1",
    port: whole("port", options.port ?? 0, 0, 65_535),
    seed: whole("seed", options.seed ?? 0, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    model: options.model ?? "policy",
    maxModelLen: options.maxModelLen === undefined ? null : whole("max-model-len", options.maxModelLen, 1, 10_000_000),
    logprobsMode: mode,
    testMode: options.testMode ?? false,
    logFile: options.logFile ?? null,
    endpointFile: options.endpointFile ?? null,
    tokenDelayMs: whole("token-delay-ms", options.tokenDelayMs ?? 0, 0, 3_600_000),
    promptTokensDetails: options.promptTokensDetails ?? false,
  };
}

function whole(name: string, value: number, min: number, max: number): number {
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    throw new TitoError("usage", `engine: --${name} is ${value}`, {
      hint: `give a whole number from ${min} to ${max}`,
    });
  }
  return value;
}

/** `fixtures/policy` of the repository this file lies in, whether it runs from `src` or from `dist`. */
function defaultWeightsDir(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const candidate = join(dir, "fixtures", "policy");
    if (existsSync(candidate)) return candidate;
    const parent = dirname(dir);
    if (parent === dir) break;
    dir = parent;
  }
  throw new TitoError("not_found", "engine: no fixtures/policy beside this installation", {
    hint: "name a model directory with --weights",
  });
}
