/**
 * Modules that look for a file beside themselves, and what the release has in their place: parts that it carries (start.ts). Each is the one module
 * of its package that does so. An esbuild plugin; a module that is no longer there fails the build.
 */
import type { Plugin } from "esbuild";

/** What start.ts puts there before any part runs. */
const RELEASE = 'globalThis[Symbol.for("tito.release")]';

/** End of the built module's path → the module in its place. */
const MODULES: Readonly<Record<string, (version: string) => string>> = {
  "cli/dist/version.js": (version) => `export const packageVersion = () => ${JSON.stringify(version)};`,
  "cli/dist/sidecar-program.js": () => `export const sidecarArgv = () => ${RELEASE}.sidecarArgv();`,
  "materializer/dist/jobs/worker-code.js": () =>
    `export const workerCode = () => ({ code: ${RELEASE}.text("materializer-worker"), eval: true });`,
  "materializer/dist/recipe/yaml.js": () => 'import * as library from "yaml"; export const yaml = () => library;',
  "renderer/dist/worker/worker-code.js": () =>
    `export const workerCode = () => ({ source: ${RELEASE}.text("renderer-worker") });`,
  "renderer/dist/bundle/bpe-wasm.js": () => `export const bpeWasm = async () => ${RELEASE}.bytes("bpe.wasm");`,
};

/** How parquet-wasm reads its module: the only lines of a library that are changed. */
const WASM_READ = /const wasmPath = [^\n]*\nconst wasmBytes = [^\n]*\n/;

/** Modules of our own that look beside themselves. `version`: of the release. */
export function standIns(version: string): Plugin {
  return {
    name: "stand-ins",
    setup(builder) {
      builder.onLoad({ filter: /\/packages\/[a-z-]+\/dist\/.*\.js$/ }, ({ path }) => {
        const found = Object.entries(MODULES).find(([ending]) => path.endsWith(`/packages/${ending}`));
        return found === undefined
          ? undefined
          : { contents: found[1](version), resolveDir: path.replace(/\/[^/]*$/, "") };
      });
      builder.onLoad({ filter: /\/parquet-wasm\/node\/parquet_wasm\.js$/ }, async ({ path }) => {
        const { readFile } = await import("node:fs/promises");
        const text = await readFile(path, "utf8");
        if (!WASM_READ.test(text)) throw new Error(`${path} reads its module in another way: see stand-ins.ts`);
        return {
          contents: text.replace(WASM_READ, `const wasmBytes = ${RELEASE}.bytes("parquet.wasm");\n`),
          loader: "js",
        };
      });
    },
  };
}

/** msgpackr's optional native addon is not shipped; the library tries to load it, and does without. */
export const withoutNativeAddon: Plugin = {
  name: "without-native-addon",
  setup(builder) {
    builder.onResolve({ filter: /^msgpackr-extract$/ }, () => ({ path: "addon", namespace: "without-native-addon" }));
    builder.onLoad({ filter: /.*/, namespace: "without-native-addon" }, () => ({
      contents: 'throw new Error("not shipped");',
    }));
  },
};

/** The sidecar's own code has no renderer in it: a bundle makes it load that part. */
export const rendererAsPart: Plugin = {
  name: "renderer-as-part",
  setup(builder) {
    builder.onResolve({ filter: /^@tito\/renderer\/thread$/ }, () => ({
      path: "thread",
      namespace: "renderer-as-part",
    }));
    builder.onLoad({ filter: /.*/, namespace: "renderer-as-part" }, () => ({
      contents: `module.exports = ${RELEASE}.load("renderer");`,
    }));
  },
};
