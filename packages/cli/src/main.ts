#!/usr/bin/env node
/** The `tito` command: one process, plain JavaScript, exit codes that mean something. */
import { runProgram } from "./program.js";

process.exitCode = await runProgram(process.argv.slice(2));
