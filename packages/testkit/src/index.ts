/**
 * @tito/testkit owns what tests share: scripted engines, a fault disk, harness drivers, seeded random, deadlines.
 * It is never imported by shipped code.
 */

export { differencesToEngine, readEngineLog } from "./engine-log.js";
export { type DiskCall, type DiskFault, FaultDisk } from "./fault-disk.js";
export { type HarnessOutcome, type HarnessRun, runHarness } from "./harness-driver.js";
export { findInstallation, type HarnessInstallation } from "./installed-harness.js";
export { seededRandom } from "./seeded-random.js";
export { Conversation, concat, ids, intent, openWriter, sha, turn } from "./turns.js";
