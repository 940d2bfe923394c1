/**
 * @tito/sidecar owns the one long-running program between a harness and an inference engine: gate, dialect, prompt, sample, decide, record.
 * It never holds training policy of any kind.
 */

export {
  ENGINES,
  readConfig,
  redactConfig,
  type SidecarConfig,
  type SidecarOptions,
  TRAJECTORY_ID,
} from "./config/config.js";
export type { Endpoint } from "./config/endpoint.js";
export { type FlagSpec, type FlagValues, parseFlags, SIDECAR_FLAGS } from "./config/flags.js";
export { type DiagnoseOptions, diagnose } from "./doctor/diagnose.js";
export type { Finding, Level } from "./doctor/finding.js";
export { type ImportedSummary, type ImportReport, importLog } from "./offline/import-log.js";
export type { ImportOptions } from "./offline/import-options.js";
export type { BadLine } from "./offline/import-plan.js";
export { type AgentUser, asUser, findAgentUser } from "./process/agent-user.js";
export { type RunIo, runCommand } from "./process/run-command.js";
export { makeScratchDir, type ScratchDir } from "./process/scratch-dir.js";
export { type Sidecar, type SidecarHooks, startSidecar, WRITER_VERSION } from "./process/sidecar.js";
export { sidecarCommand } from "./process/sidecar-command.js";
export type { SealReport } from "./trajectory/seal.js";
