/** Import direction: which package may use which, and inside a package which room. ARCHITECTURE.md draws the same. */
import { type Finding, lineAt, type SourceFile } from "./finding.js";
import { fileCircles, type PackageGraph, packageGraphs, roomOf } from "./room-graph.js";
import { ALLOWED_ROOMS, type RoomTable } from "./room-table.js";

const ALLOWED_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  format: [],
  continuity: ["format"],
  renderer: ["format"],
  "reference-engine": ["format"],
  sidecar: ["format", "continuity", "renderer"],
  materializer: ["format", "continuity"],
  cli: ["format", "continuity", "renderer", "sidecar", "materializer", "reference-engine"],
  testkit: ["format", "continuity", "reference-engine"],
};

/** Packages whose sources are pure: no node: import of any kind, except in the files named. */
const PURE_PACKAGES: Readonly<Record<string, readonly string[]>> = { continuity: [] };

const IMPORT = /(?:from\s+|import\s*\(\s*|import\s+)["']([^"'\n]+)["']/g;

export function checkImports(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    const match = /^packages\/([^/]+)\/(src|test)\//.exec(file.path);
    if (match === null || !file.path.endsWith(".ts")) return [];
    return importsOf(file).flatMap((found) => checkOne(file, match[1]!, match[2] === "src", found));
  });
}

function importsOf(file: SourceFile): { specifier: string; line: number }[] {
  return [...file.text.matchAll(IMPORT)].map((match) => ({
    specifier: match[1]!,
    line: lineAt(file.text, match.index),
  }));
}

function checkOne(
  file: SourceFile,
  packageName: string,
  isSource: boolean,
  found: { specifier: string; line: number },
): Finding[] {
  const report = (message: string): Finding[] => [{ check: "imports", path: file.path, line: found.line, message }];
  const allowed = ALLOWED_IMPORTS[packageName];
  if (allowed === undefined) return report(`package ${packageName} has no row in the import table`);
  const target = /^@tito\/([^/]+)/.exec(found.specifier)?.[1];
  if (target !== undefined) {
    const testOnly = !isSource && (target === "testkit" || target === "reference-engine");
    if (target === packageName || allowed.includes(target) || testOnly) return [];
    return report(`${packageName} may not import @tito/${target}`);
  }
  if (found.specifier.startsWith(".") && leavesPackage(file.path, found.specifier, isSource)) {
    return report(`relative import leaves the package: ${found.specifier}`);
  }
  if (isSource && found.specifier.startsWith("node:") && packageName in PURE_PACKAGES) {
    return report(`${packageName} is pure and may not import ${found.specifier}`);
  }
  return [];
}

function leavesPackage(path: string, specifier: string, isSource: boolean): boolean {
  const parts = path.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  const inside = parts.slice(0, 2).join("/") === path.split("/").slice(0, 2).join("/");
  return isSource ? !inside || parts[2] !== "src" : !inside;
}

/** The workspace dependencies that a package.json declares must be rows of the same table. */
export function checkManifest(packageName: string, dependencies: readonly string[]): Finding[] {
  const allowed = ALLOWED_IMPORTS[packageName] ?? [];
  return dependencies
    .filter((name) => name.startsWith("@tito/") && !allowed.includes(name.slice("@tito/".length)))
    .map((name) => ({
      check: "imports",
      path: `packages/${packageName}/package.json`,
      line: 1,
      message: `dependency ${name} is not in the import table`,
    }));
}

/** Rooms of each package import only what their row allows, and no files import each other in a circle. */
export function checkRooms(
  files: readonly SourceFile[],
  tables: Readonly<Record<string, RoomTable>> = ALLOWED_ROOMS,
): Finding[] {
  return [...packageGraphs(files)].flatMap(([name, graph]) => {
    const table = tables[name];
    return [...(table === undefined ? [] : roomFindings(name, graph, table)), ...circleFindings(name, graph)];
  });
}

function roomFindings(name: string, graph: PackageGraph, table: RoomTable): Finding[] {
  const finding = (path: string, line: number, message: string): Finding => ({
    check: "rooms",
    path: `packages/${name}/src/${path}`,
    line,
    message,
  });
  const known = (path: string): boolean => roomOf(path) === "index" || Object.hasOwn(table, roomOf(path));
  const strangers = graph.files
    .filter((path) => !known(path))
    .map((path) => finding(path, 1, `room ${roomOf(path)} has no row in scripts/checks/room-table.ts`));
  const against = graph.arrows.flatMap(({ from, to, line }) => {
    const [room, target] = [roomOf(from), roomOf(to)];
    if (room === target || room === "index" || !known(from) || !known(to)) return [];
    return table[room]!.includes(target)
      ? []
      : [finding(from, line, `room ${room} may not import from room ${target}`)];
  });
  return [...strangers, ...against];
}

function circleFindings(name: string, graph: PackageGraph): Finding[] {
  return fileCircles(graph).map((circle) => ({
    check: "rooms",
    path: `packages/${name}/src/${circle[0]!}`,
    line: 1,
    message: `files import each other in a circle: ${circle.join(", ")}`,
  }));
}
