/**
 * What tito knows of one harness: its own config files, environment and command line, so that it speaks to a sidecar unmodified.
 * An adapter is data and pure functions; `write-files.ts` is the one place that touches the disk.
 */
import type { Dialect } from "@tito/format";

/** The parts of an endpoint file that an adapter needs. */
export interface HarnessEndpoint {
  openai_base_url: string;
  anthropic_base_url: string;
  api_key: string;
}

/** What the harness is pointed at. */
export interface HarnessTarget {
  endpoint: HarnessEndpoint;
  /** Model id as the sidecar serves it. */
  model: string;
  /** Directory that stands for the home directory: all files are written below it. */
  home: string;
  /** Context window and longest answer, in tokens; the harness plans its compaction with them. */
  contextTokens: number;
  outputTokens: number;
}

export interface RunOptions {
  /** Continue the last session of this directory instead of starting one. */
  resume?: boolean;
  /** Put before the prompt, for what this list does not know. */
  extraArgs?: readonly string[];
}

/** A file to write; `path` is relative to home. */
export interface HarnessFile {
  path: string;
  content: string;
}

export interface HarnessSetup {
  files: HarnessFile[];
  /** Variables on top of what the harness inherits. The key is here, never in a file. */
  env: Record<string, string>;
  /** Command and arguments of a run without a terminal. */
  argv(prompt: string, options?: RunOptions): string[];
}

export interface HarnessAdapter {
  /** Name on the command line. */
  name: string;
  /** What it speaks to the sidecar. */
  dialect: Dialect;
  /** How a user installs the version that these facts were checked with. */
  install: string;
  checkedVersion: string;
  /** Name of the rule data in @tito/continuity that tells its sub-agents, titles and compactions apart. */
  rules: string;
  /** Headers by which it names session and sub-agent; empty when it names neither. */
  headerRules: readonly { header: string; names: "session" | "sub_agent" | "parent" | "turn" }[];
  configure(target: HarnessTarget): HarnessSetup;
  /** Behaviour that a reader of its trajectories should know. */
  quirks: readonly string[];
}

/** Name under which every harness knows the sidecar as a provider. */
export const PROVIDER = "tito";
/** Variable with the key; `tito run` sets it for any command. */
export const KEY_VARIABLE = "OPENAI_API_KEY";

/** A config file in JSON. */
export function jsonFile(path: string, value: unknown): HarnessFile {
  return { path, content: `${JSON.stringify(value, null, 2)}\n` };
}
