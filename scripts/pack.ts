/**
 * `npm run pack [DIR]`: packs the `tito` command into one tarball that npm installs anywhere, and prints the tarball's path.
 * The tarball brings the workspace's packages and the patched template engine along; the registry supplies the rest.
 * docs/decisions/0180-the-command-packs-into-one-tarball.md
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  [field: string]: unknown;
}

const root = resolve(import.meta.dirname ?? "scripts", "..");
const PATCHED = "@huggingface/jinja";
const OWN = ["format", "continuity", "renderer", "sidecar", "materializer", "reference-engine"];

const manifestOf = (dir: string): Manifest => JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as Manifest;

/** A copy of one package's built files, without the maps that only a debugger of this repository reads. */
function copyBuilt(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  const kept = (path: string): boolean => !/\.(js|ts)\.map$/.test(path);
  cpSync(join(from, "dist"), join(to, "dist"), { recursive: true, filter: kept });
  cpSync(join(from, "README.md"), join(to, "README.md"));
  cpSync(join(root, "LICENSE"), join(to, "LICENSE"));
}

/** `workspace:*` means nothing outside the workspace: each becomes the version that is packed. */
function outside(manifest: Manifest, version: string): Manifest {
  const { devDependencies: _, scripts: __, private: ___, ...rest } = manifest;
  const dependencies = Object.fromEntries(
    Object.entries(manifest.dependencies ?? {}).map(([name, range]) => [
      name,
      name.startsWith("@tito/") ? version : range,
    ]),
  );
  return { ...rest, license: "Apache-2.0", dependencies };
}

const writeManifest = (dir: string, manifest: Manifest): void =>
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);

/** Lays out the package as npm packs it: the command, and beneath it what it bundles. */
function stage(dir: string): void {
  const cli = join(root, "packages/cli");
  const manifest = manifestOf(cli);
  copyBuilt(cli, dir);
  cpSync(join(cli, "bin"), join(dir, "bin"), { recursive: true });
  const dependencies: Record<string, string> = {};
  for (const name of OWN) {
    const from = join(root, "packages", name);
    const to = join(dir, "node_modules/@tito", name);
    copyBuilt(from, to);
    const own = outside(manifestOf(from), manifest.version);
    writeManifest(to, own);
    Object.assign(dependencies, own.dependencies);
  }
  cpSync(join(root, "fixtures/policy"), join(dir, "node_modules/@tito/reference-engine/fixtures/policy"), {
    recursive: true,
  });
  const patched = realpathSync(join(root, "packages/renderer/node_modules", PATCHED));
  cpSync(patched, join(dir, "node_modules", PATCHED), { recursive: true });
  const all = outside(manifest, manifest.version);
  writeManifest(dir, {
    ...all,
    dependencies: { ...dependencies, ...all.dependencies },
    bundleDependencies: [...OWN.map((name) => `@tito/${name}`), PATCHED],
    files: ["bin", "dist"],
  });
}

const target = resolve(process.argv[2] ?? join(root, "dist"));
const staging = mkdtempSync(join(tmpdir(), "tito-pack-"));
try {
  stage(staging);
  mkdirSync(target, { recursive: true });
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", target], {
    cwd: staging,
    encoding: "utf8",
  });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  console.log(join(target, filename));
} finally {
  rmSync(staging, { recursive: true, force: true });
}
