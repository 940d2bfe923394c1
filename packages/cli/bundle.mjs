// Builds dist/sidecar-main.js and all that it uses into dist/tito-sidecar.mjs: one file, no native code. docs/decisions/0113-the-sidecar-is-one-file.md
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/** node-server asks for HTTP/2's classes only to tell its requests apart. Ours is an HTTP/1.1 server, and loading node:http2 would be paid at every start. */
const withoutHttp2 = {
  name: "without-http2",
  setup(builder) {
    builder.onResolve({ filter: /^node:http2$/ }, () => ({ path: "http2", namespace: "without-http2" }));
    builder.onLoad({ filter: /.*/, namespace: "without-http2" }, () => ({
      contents: "export class Http2ServerRequest {}\nexport const constants = {};",
    }));
  },
};

/** msgpackr by the entry that does not look for its optional native addon. */
const withoutAddon = {
  name: "without-addon",
  setup(builder) {
    builder.onResolve({ filter: /^msgpackr$/ }, ({ kind, resolveDir }) =>
      builder.resolve("msgpackr/pack", { kind, resolveDir }),
    );
  },
};

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
