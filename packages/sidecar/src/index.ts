/**
 * @tito/sidecar owns the one long-running program between a harness and an inference engine: gate, dialect, prompt, sample, decide, record.
 * It never holds training policy of any kind.
 */
export { type AgentUser, asUser, findAgentUser } from "./agent-user.js";
export { ENGINES, readConfig, redactConfig, type SidecarConfig, type SidecarOptions, TRAJECTORY_ID } from "./config.js";
export { type DiagnoseOptions, diagnose } from "./doctor/diagnose.js";
export type { Finding, Level } from "./doctor/finding.js";
export type { Endpoint } from "./endpoint.js";
export { type FlagSpec, type FlagValues, parseFlags, SIDECAR_FLAGS } from "./flags.js";
export { type ImportedSummary, type ImportOptions, type ImportReport, importLog } from "./offline/import-log.js";
export type { BadLine } from "./offline/import-plan.js";
export { type RunIo, runCommand } from "./run-command.js";
export { makeScratchDir, type ScratchDir } from "./scratch-dir.js";
export type { SealReport } from "./seal.js";
export { type Sidecar, type SidecarHooks, startSidecar, WRITER_VERSION } from "./sidecar.js";
export { sidecarCommand } from "./sidecar-command.js";
