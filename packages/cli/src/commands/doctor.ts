import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import type { Finding, Level } from "@tito/sidecar";
import { renderTable } from "../table.js";
import type { Register } from "./command.js";

interface DoctorFlags {
  out: string;
  agentUser?: string;
  upstream?: string;
  model?: string;
  upstreamKeyFile?: string;
  hmacKeyFile?: string;
  anchorFd?: string;
  host: string;
  strict?: boolean;
  json?: boolean;
}

/** `tito doctor`: what could go wrong here, before it does. 0 nothing will fail · 1 warnings, with --strict · 2 something will fail. */
export const registerDoctor: Register = (program, outcome) => {
  program
    .command("doctor")
    .summary("what could go wrong here, before it does")
    .description(
      "Tries the directory, the disk, the network, the agent's user and the engine on things of its own, leaves nothing behind, and says which layers of docs/threat-model.md hold.\nGive the flags that the sidecar will get.\nExit codes: 0 nothing will fail · 1 with --strict: nothing will fail, and there are warnings · 2 something will fail · 64 usage.",
    )
    .option("--out <dir>", "directory that trajectories will go to; need not exist", ".")
    .option(
      "--agent-user <name>",
      "user that the agent will run under; what it can do to the recorder is tried (needs root)",
    )
    .option("--upstream <url>", "the inference engine: does it answer")
    .option("--model <id>", "with --upstream: do its replies carry ids and log probabilities (samples a few tokens)")
    .option("--upstream-key-file <file>", "the engine's key")
    .option("--hmac-key-file <file>", "key for keyed record digests")
    .option("--anchor-fd <n>", "descriptor that will get the chain heads")
    .option("--host <address>", "listen address", "127.0.0.1")
    .option("--strict", "warnings count")
    .option("--json", "one JSON object with all findings")
    .action(async (flags: DoctorFlags) => {
      const { diagnose } = await import("@tito/sidecar");
      const findings = await diagnose({
        out: flags.out,
        agentUser: flags.agentUser ?? null,
        upstream: flags.upstream ?? null,
        model: flags.model ?? null,
        upstreamKey: flags.upstreamKeyFile === undefined ? null : readKey(flags.upstreamKeyFile),
        host: flags.host,
        anchorFd: flags.anchorFd !== undefined,
        hmacKeyFile: flags.hmacKeyFile ?? null,
      });
      outcome.exitCode = exitCode(findings, flags.strict === true);
      console.log(
        flags.json === true ? JSON.stringify({ exit_code: outcome.exitCode, findings }) : renderFindings(findings),
      );
    });
};

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new TitoError("usage", `--upstream-key-file: cannot read ${file}`, { cause });
  }
}

function exitCode(findings: readonly Finding[], strict: boolean): number {
  if (findings.some((one) => one.level === "failure")) return 2;
  return strict && findings.some((one) => one.level === "warning") ? 1 : 0;
}

const MARKS: Record<Level, string> = { ok: "ok", warning: "warning", failure: "FAILS", skipped: "–" };

function renderFindings(findings: readonly Finding[]): string {
  const rows = findings.flatMap((one) => [
    [one.check, MARKS[one.level], one.message],
    ...(one.hint === null ? [] : [["", "", `→ ${one.hint}`]]),
  ]);
  const count = (level: Level): number => findings.filter((one) => one.level === level).length;
  const failures = count("failure");
  const verdict = failures === 0 ? "nothing will fail" : `${failures} will fail`;
  return `${renderTable([{ title: "check" }, { title: "" }, { title: "found" }], rows)}\n\n${verdict}, ${count("warning")} warnings`;
}
