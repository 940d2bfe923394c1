#!/usr/bin/env node
// A file that exists before the first build, so that package managers can link the `tito` command.
import "../dist/main.js";
