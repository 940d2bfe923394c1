/**
 * The frame around the parts: the first lines of `tito.mjs` and of the executable's program. The sidecar's code stands in it as a function, which costs
 * nothing until it is called; the other parts are carried compressed and are not looked at before they are needed.
 */
import { brotliCompressSync, constants } from "node:zlib";
import type { Parts } from "./parts.js";

/** Runs in both forms. `carried(name)`: the compressed part; `self`: how this program is started again. */
const FRAME = `
function start(require, file, self, carried, sidecar) {
  const bytes = (name) => require("node:zlib").brotliDecompressSync(carried(name));
  const text = (name) => bytes(name).toString("utf8");
  const evaluate = (run) => {
    const module = { exports: {} };
    run(require, module, module.exports, file);
    return module.exports;
  };
  const load = (name) =>
    evaluate(require("node:vm").compileFunction(text(name), ["require", "module", "exports", "__filename"], { filename: "tito-" + name + ".cjs" }));
  globalThis[Symbol.for("tito.release")] = { bytes, text, load, sidecarArgv: () => [...self, "sidecar"] };
  const args = process.argv.slice(2);
  if (args[0] === "sidecar" && !args.includes("--help") && !args.includes("-h")) evaluate(sidecar);
  else load("cli");
}
`;

const sidecarFunction = (parts: Parts): string =>
  `function sidecar(require, module, exports, __filename) {\n${parts.sidecar.text}}\n`;

/** Fast to make, and a third of the size; the same bytes from the same Node. */
export function compressed(bytes: Buffer): Buffer {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return brotliCompressSync(bytes, { params: { [BROTLI_PARAM_QUALITY]: 9, [BROTLI_PARAM_SIZE_HINT]: bytes.length } });
}

/** Works as a module and as a script, so under any name: a file that ends in .js, or in nothing, is a script for Node 20. */
export function oneFile(parts: Parts): string {
  const others = Object.entries(parts.others).map(
    ([name, bytes]) => `${JSON.stringify(name)}: () => "${compressed(bytes).toString("base64")}",\n`,
  );
  return `#!/usr/bin/env node
// tito ${parts.version}, the whole command in one file for Node 20 and later.
${FRAME}
const carried = {
${others.join("")}};
${sidecarFunction(parts)}
import("node:module").then(({ createRequire }) => {
  const file = process.argv[1];
  start(createRequire(file), file, [process.execPath, file], (name) => Buffer.from(carried[name](), "base64"), sidecar);
});
`;
}

/** The main script of the executable; the other parts are its assets. */
export function executableScript(parts: Parts): string {
  return `${FRAME}
${sidecarFunction(parts)}
start(require("node:module").createRequire(process.execPath), process.execPath, [process.execPath],
  (name) => Buffer.from(require("node:sea").getRawAsset(name)), sidecar);
`;
}
