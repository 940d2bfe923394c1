import { TitoError } from "@tito/format";
import { asUser, findAgentUser, type RunIo, runCommand } from "@tito/sidecar";
import { sidecarArgv } from "../sidecar-program.js";
import { collect, type Register } from "./command.js";
import { addSidecarFlags, flagValues } from "./sidecar-flags.js";

interface RunFlags extends Record<string, unknown> {
  harness?: string[];
  harnessHome?: string;
  harnessArg?: string[];
  model?: string[];
  maxContextTokens?: string[];
  maxOutputTokens?: string[];
  agentUser?: string[];
  out?: string[];
}

/** `tito run`: a sidecar, a command against it, a seal; the command's exit code. */
export const registerRun: Register = (program, outcome) => {
  const command = program
    .command("run")
    .summary("start a sidecar, run a command or a harness against it, seal")
    .usage("[flags] -- COMMAND …  |  [flags] --harness NAME -- PROMPT …")
    .description(
      [
        "Starts a sidecar, runs COMMAND with TITO_ENDPOINT_FILE, OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY, seals, and exits as COMMAND did.",
        "With --harness it writes the harness's own config files and starts it on PROMPT.",
        "Exit codes: COMMAND's · 128 + n on a signal · 127 not found · 125 tito failed, or COMMAND succeeded and nothing was captured.",
      ].join("\n"),
    )
    .argument("[command...]", "what to run, after --");
  addSidecarFlags(command, { run: true });
  command
    .option(
      "--harness-home <DIR>",
      "home directory for the harness's config files (default: a fresh one, removed afterwards)",
    )
    .option("--harness-arg <ARG>", "an argument for the harness, before the prompt; repeatable", collect)
    .action(async (words: string[], flags: RunFlags) => {
      const io = {
        sidecarArgv: sidecarArgv(),
        env: process.env,
        warn: (message: string) => console.error(`tito: ${message}`),
      };
      const name = flags.harness?.at(-1);
      outcome.exitCode =
        name === undefined ? await runCommand(flagValues(flags), words, io) : await runHarness(name, words, flags, io);
    });
};

async function runHarness(name: string, words: readonly string[], flags: RunFlags, io: RunIo): Promise<number> {
  const { findHarness } = await import("../harness/registry.js");
  const { planWindow } = await import("../harness/window.js");
  const { isWritable, takeHome } = await import("../harness/home.js");
  const { writeHarness } = await import("../harness/write-files.js");
  const adapter = findHarness(name);
  const prompt = words.join(" ");
  if (prompt === "")
    throw new TitoError("usage", "no PROMPT", { hint: `tito run [flags] --harness ${name} -- PROMPT …` });
  const userName = flags.agentUser?.at(-1);
  const user = userName === undefined ? null : findAgentUser(userName);
  const home = takeHome({ given: flags.harnessHome ?? null, user, out: flags.out?.at(-1) ?? null, warn: io.warn });
  const model = flags.model?.at(-1) ?? "";
  const nowhere = { openai_base_url: "http://127.0.0.1:0/v1", anthropic_base_url: "http://127.0.0.1:0", api_key: "" };
  const anyWindow = { contextTokens: 1, outputTokens: 1 };
  const program = adapter.configure({ model, home: home.path, ...anyWindow, endpoint: nowhere }).argv(prompt)[0]!;
  const limits = {
    maxContextTokens: lastNumber(flags.maxContextTokens),
    maxOutputTokens: lastNumber(flags.maxOutputTokens),
  };
  if (user !== null && !isWritable(process.cwd(), user))
    io.warn(`user ${user.name} can not write to ${process.cwd()}, where the harness works`);
  try {
    // The sidecar knows a harness by the name of its rules, which classify its calls.
    return await runCommand(flagValues({ ...flags, harness: [adapter.rules] }), [program], {
      ...io,
      prepare: (endpoint) => {
        const window = planWindow({ told: endpoint.context_tokens, ...limits });
        io.warn(window.words);
        const target = { model, home: home.path, endpoint, ...window };
        const setup = asUser(user, () => writeHarness(adapter, target));
        return {
          argv: setup.argv(prompt, { extraArgs: flags.harnessArg ?? [] }),
          env: { ...home.env, ...setup.env },
        };
      },
    });
  } finally {
    home.remove();
  }
}

function lastNumber(values: readonly string[] | undefined): number | null {
  return values === undefined ? null : Number(values.at(-1));
}
