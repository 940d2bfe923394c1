/**
 * @tito/reference-engine owns the embedded default inference server: a small deterministic policy behind a vLLM-compatible API, for the demo and for tests.
 * It renders and parses by itself, so that a check against another renderer compares two implementations. It never ships in the sidecar bundle.
 */

export {
  ANSWER_FILE,
  DEMO_TOOLS,
  type DemoTask,
  demoTasks,
  SYSTEM_PROMPT,
  TASK_KINDS,
  type TaskKind,
  workDirectory,
} from "./lm/tasks.js";
export type { LogEntry } from "./log.js";
export type { EngineOptions, LogprobsMode } from "./options.js";
export { type RunningEngine, startEngine } from "./start.js";
