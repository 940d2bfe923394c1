/** The parts of a release: the sidecar's code, all other code, the code of threads, and two WASM modules. Each script is CommonJS and complete. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { withoutAddon, withoutHttp2 } from "../../packages/cli/bundle-plugins.mjs";
import { rendererAsPart, standIns, withoutNativeAddon } from "./stand-ins.js";

const root = resolve(import.meta.dirname, "../..");
const packageDir = (name: string): string => join(root, "packages", name);

interface Script {
  text: string;
  /** What it was made of, relative to the repository. */
  sources: string[];
}

export interface Parts {
  version: string;
  /** Evaluated in every sidecar, so that it is held to a size and to a list of what must not be in it. */
  sidecar: Script;
  /** Name → what is loaded when it is needed. */
  others: Readonly<Record<string, Buffer>>;
}

/** Bundles what `npm run build` left in each package's dist. */
export async function buildParts(): Promise<Parts> {
  const { version } = JSON.parse(readFileSync(join(packageDir("cli"), "package.json"), "utf8")) as { version: string };
  const script = (entry: string, plugins: Plugin[]): Promise<Script> =>
    bundle(entry, [standIns(version), ...plugins, withoutHttp2]);
  // The file itself, because a bare import of a package without side effects is left out.
  const thread = (file: string, plugins: Plugin[]): Promise<Script> =>
    bundle(readFileSync(file, "utf8"), [standIns(version), ...plugins, withoutHttp2], dirname(file));
  const cli = packageDir("cli");
  const sidecar = await script(
    `import { runSidecar } from "${cli}/dist/run-sidecar.js"; void runSidecar(process.argv.slice(2)).then((code) => { process.exitCode = code; });`,
    [rendererAsPart, withoutAddon],
  );
  const whole = await script(
    `import { runProgram } from "${cli}/dist/program.js"; void runProgram(process.argv.slice(2)).then((code) => { process.exitCode = code; });`,
    [withoutNativeAddon],
  );
  const renderer = await script(`export * from "${packageDir("renderer")}/dist/thread.js";`, []);
  const rendererWorker = await thread(join(packageDir("renderer"), "dist/worker/worker-entry.js"), []);
  const materializerWorker = await thread(join(packageDir("materializer"), "dist/worker.js"), [withoutAddon]);
  const wasm = (name: string, path: string): Buffer =>
    readFileSync(createRequire(`${packageDir(name)}/`).resolve(path));
  return {
    version,
    sidecar,
    others: {
      cli: Buffer.from(whole.text),
      renderer: Buffer.from(renderer.text),
      "renderer-worker": Buffer.from(rendererWorker.text),
      "materializer-worker": Buffer.from(materializerWorker.text),
      "parquet.wasm": wasm("materializer", "parquet-wasm/node/parquet_wasm_bg.wasm"),
      "bpe.wasm": wasm("renderer", "tiktoken/lite/tiktoken_bg.wasm"),
    },
  };
}

/** `entry`: text of a module in the directory `from`. */
async function bundle(entry: string, plugins: Plugin[], from = packageDir("cli")): Promise<Script> {
  const result = await build({
    stdin: { contents: entry, resolveDir: from, sourcefile: "entry.js" },
    absWorkingDir: root,
    write: false,
    metafile: true,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    minify: true,
    // These scripts are not modules, and have no loader for import().
    supported: { "dynamic-import": false },
    define: { "import.meta.url": "titoReleaseUrl" },
    banner: { js: 'const titoReleaseUrl=require("node:url").pathToFileURL(__filename).href;' },
    legalComments: "none",
    logLevel: "error",
    plugins,
  });
  return { text: result.outputFiles[0]!.text, sources: Object.keys(result.metafile.inputs) };
}
