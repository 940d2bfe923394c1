import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { TitoError } from "@tito/format";
import type { HarnessEndpoint } from "../harness/adapter.js";
import { CONTEXT_TOKENS, OUTPUT_TOKENS, planWindow } from "../harness/window.js";
import { type Register, wholeNumber } from "./command.js";

interface HarnessFlags {
  endpoint: string;
  home: string;
  model: string;
  contextTokens?: number;
  outputTokens?: number;
  force?: boolean;
  json?: boolean;
}

/** `tito harness NAME`: a harness's own config files, environment and command line. */
export const registerHarness: Register = (program) => {
  program
    .command("harness")
    .summary("write a harness's own config files, print its environment and command line")
    .description(
      "Writes the config files with which an unmodified harness speaks to a running sidecar, and prints environment and command line.\nNames: pi, opencode, mini-swe-agent, codex, claude-code.",
    )
    .argument("<name>", "which harness")
    .requiredOption("--endpoint <file>", "the sidecar's endpoint file")
    .requiredOption("--home <dir>", "home directory of the harness; files are written below it")
    .option("--model <id>", "model id as the sidecar serves it", "policy")
    .option(
      "--context-tokens <n>",
      `context window that the harness plans with (default: the endpoint's, else ${CONTEXT_TOKENS})`,
      wholeNumber("--context-tokens", 1),
    )
    .option(
      "--output-tokens <n>",
      `longest answer (default: ${OUTPUT_TOKENS}, or an eighth of a smaller window)`,
      wholeNumber("--output-tokens", 1),
    )
    .option("--force", "overwrite files that are different")
    .option("--json", "print files, environment and command line as one JSON object")
    .action(async (name: string, flags: HarnessFlags) => {
      const { findHarness } = await import("../harness/registry.js");
      const { writeHarness } = await import("../harness/write-files.js");
      const adapter = findHarness(name);
      // The harness is started in the directory that it works on, not in this one.
      const home = resolve(flags.home);
      const endpoint = readEndpoint(flags.endpoint);
      const window = planWindow({
        told: flags.contextTokens ?? endpoint.context_tokens,
        maxContextTokens: null,
        maxOutputTokens: flags.outputTokens ?? null,
      });
      const target = { endpoint, model: flags.model, home, ...window };
      const setup = writeHarness(adapter, target, { force: flags.force ?? false });
      const files = setup.files.map((file) => join(home, file.path));
      const argv = setup.argv("PROMPT");
      if (flags.json === true) {
        console.log(JSON.stringify({ schema: "tito.harness/v1", name, files, env: setup.env, argv }));
        return;
      }
      for (const file of files) console.log(`wrote ${file}`);
      for (const [key, value] of Object.entries(setup.env)) console.log(`export ${key}=${quote(value)}`);
      console.log(argv.map(quote).join(" "));
    });
};

function readEndpoint(file: string): HarnessEndpoint & { context_tokens: number | null } {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw new TitoError("not_found", `cannot read the endpoint file ${file}`, {
      cause,
      hint: "start a sidecar with --endpoint-file",
    });
  }
  const fields =
    typeof value === "object" && value !== null
      ? (value as Partial<Record<keyof HarnessEndpoint | "context_tokens", unknown>>)
      : {};
  const text = (key: keyof HarnessEndpoint): string => {
    const field = fields[key];
    if (typeof field !== "string")
      throw new TitoError("format_invalid", `${file} is not an endpoint file: ${key} is missing`);
    return field;
  };
  return {
    openai_base_url: text("openai_base_url"),
    anthropic_base_url: text("anthropic_base_url"),
    api_key: text("api_key"),
    // One that was written before endpoints told it has none.
    context_tokens: typeof fields.context_tokens === "number" ? fields.context_tokens : null,
  };
}

function quote(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
