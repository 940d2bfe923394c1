// Builds dist/sidecar-main.js and all that it uses into dist/tito-sidecar.mjs: one file, no native code. docs/decisions/0113-the-sidecar-is-one-file.md
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { withoutAddon, withoutHttp2 } from "./bundle-plugins.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  entryPoints: [at("dist/sidecar-main.js")],
  outfile: at("dist/tito-sidecar.mjs"),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  minify: true,
  // A crash is recorded with its stack, which the map beside the file translates; nothing loads the map. Names kept in the file itself would be
  // set anew on every closure of every call.
  sourcemap: "external",
  // Loaded only for a renderer bundle, with its tokenizer and its worker threads' files.
  external: ["@tito/renderer/thread"],
  plugins: [withoutHttp2, withoutAddon],
  legalComments: "none",
});
