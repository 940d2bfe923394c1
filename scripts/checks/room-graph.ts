/**
 * The rooms of a package: each folder of its `src` is one, and so is each file that stands beside the folders. Pure.
 * An arrow is an import, of a type too: whoever reads a file has to know what it names.
 */
import { lineAt, type SourceFile } from "./finding.js";

/** One import of a package's own file. Paths are relative to the package's `src`. */
interface Arrow {
  from: string;
  to: string;
  line: number;
}

export interface PackageGraph {
  files: string[];
  arrows: Arrow[];
}

const SOURCE = /^packages\/([^/]+)\/src\/(.+\.ts)$/;
const IMPORT = /(?:from\s+|import\s*\(\s*|import\s+)["'](\.[^"'\n]*)["']/g;

/** The graph of each package that has sources among `files`. Imports of files that are not there are left to the compiler. */
export function packageGraphs(files: readonly SourceFile[]): Map<string, PackageGraph> {
  const sources = new Map<string, Map<string, SourceFile>>();
  for (const file of files) {
    const [, name, path] = SOURCE.exec(file.path) ?? [];
    if (name === undefined || path === undefined) continue;
    sources.set(name, (sources.get(name) ?? new Map()).set(path, file));
  }
  return new Map([...sources].map(([name, own]) => [name, graphOf(own)]));
}

function graphOf(own: ReadonlyMap<string, SourceFile>): PackageGraph {
  const arrows = [...own].flatMap(([from, { text }]) =>
    [...text.matchAll(IMPORT)]
      .map((match) => ({ from, to: resolveFrom(from, match[1]!), line: lineAt(text, match.index) }))
      .filter(({ to }) => own.has(to)),
  );
  return { files: [...own.keys()], arrows };
}

function resolveFrom(file: string, specifier: string): string {
  const parts = file.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/").replace(/\.js$/, ".ts");
}

/** `read/scan.ts` stands in `read`; `server.ts` is a room by itself, `server`. */
export function roomOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.indexOf("/")) : path.replace(/\.ts$/, "");
}

/** Rooms → the rooms that they import from, sorted by name; every room has an entry. */
export function roomArrows({ files, arrows }: PackageGraph): Map<string, Set<string>> {
  const rooms = new Map([...new Set(files.map(roomOf))].sort().map((room) => [room, new Set<string>()]));
  const between = arrows.map(({ from, to }) => [roomOf(from), roomOf(to)] as const).filter(([from, to]) => from !== to);
  for (const [from, to] of between.sort()) rooms.get(from)!.add(to);
  return rooms;
}

/** Groups of nodes that reach each other: strongly connected components of more than one node, by Tarjan's algorithm. */
export function circlesOf(nodes: readonly string[], next: (node: string) => Iterable<string>): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    low.set(node, order.get(node)!);
    open.push(node);
    for (const to of next(node)) {
      if (!order.has(to)) visit(to);
      if (open.includes(to)) low.set(node, Math.min(low.get(node)!, low.get(to)!));
    }
    if (low.get(node) !== order.get(node)) return;
    const circle = open.splice(open.indexOf(node));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const node of nodes) if (!order.has(node)) visit(node);
  return circles;
}

/** Files that import each other in a circle. */
export function fileCircles({ files, arrows }: PackageGraph): string[][] {
  const next = new Map<string, string[]>();
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to]);
  return circlesOf(files, (file) => next.get(file) ?? []);
}

/** Pairs of rooms that import from each other: one of the two arrows runs back. */
export function arrowsBack(rooms: ReadonlyMap<string, ReadonlySet<string>>): [string, string][] {
  return [...rooms].flatMap(([from, targets]) =>
    [...targets].filter((to) => from < to && rooms.get(to)?.has(from)).map((to): [string, string] => [from, to]),
  );
}
