/**
 * `tito sidecar` as a program of its own. It is built into one file (bundle.mjs), because a sidecar starts with every rollout: resolving and
 * reading two hundred modules would cost more than all the rest of its start. Only a renderer bundle makes it load more, `@tito/renderer/thread`.
 */
import { runSidecar } from "./run-sidecar.js";

process.exitCode = await runSidecar(process.argv.slice(2));
