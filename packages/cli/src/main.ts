#!/usr/bin/env node
/** The `tito` command: one process, plain JavaScript, exit codes that mean something. */
import { SIDECAR_PROGRAM } from "./sidecar-program.js";
import { startsSidecar } from "./starts-sidecar.js";

const args = process.argv.slice(2);
if (startsSidecar(args)) await import(SIDECAR_PROGRAM.href);
else {
  const { runProgram } = await import("./program.js");
  process.exitCode = await runProgram(args);
}
