/**
 * `npm run rooms [PACKAGE …]`: the room graph of each package, from its sources. Rooms with the rooms that they import from, then how many files, rooms
 * and arrows there are, how many arrows run back, and which rooms or files stand in a circle. It only reports; `npm run check` judges.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { SourceFile } from "./finding.js";
import { arrowsBack, circlesOf, fileCircles, packageGraphs, roomArrows } from "./room-graph.js";

const root = resolve(import.meta.dirname ?? "scripts/checks", "../..");

function sourcesOf(name: string): SourceFile[] {
  const src = join(root, "packages", name, "src");
  return readdirSync(src, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: relative(root, path).replaceAll("\\", "/"), text: readFileSync(path, "utf8") }));
}

const list = (circles: readonly string[][]): string =>
  circles.length === 0 ? "none" : circles.map((circle) => circle.join(" ↔ ")).join("; ");

const asked = process.argv.slice(2);
const names = asked.length > 0 ? asked : readdirSync(join(root, "packages")).sort();
for (const [name, graph] of packageGraphs(names.flatMap(sourcesOf))) {
  const rooms = roomArrows(graph);
  const arrows = [...rooms.values()].reduce((sum, targets) => sum + targets.size, 0);
  console.log(name);
  for (const [room, targets] of rooms) console.log(`  ${room} → ${[...targets].join(" ") || "nothing"}`);
  console.log(
    `  ${graph.files.length} files, ${graph.arrows.length} imports between them; ${rooms.size} rooms, ${arrows} arrows, ` +
      `${arrowsBack(rooms).length} back`,
  );
  console.log(`  circles of rooms: ${list(circlesOf([...rooms.keys()], (room) => rooms.get(room)!))}`);
  console.log(`  circles of files: ${list(fileCircles(graph))}`);
}
