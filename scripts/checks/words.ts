/** What the repository may not say: paths of the machine it stands on, homes of people, download addresses in lockfiles. */
import { dirname } from "node:path";
import { type Finding, lineAt, type SourceFile } from "./finding.js";

/** `root` is the absolute path of the working tree: neither it nor its parent may stand in a file. */
export function checkWords(files: readonly SourceFile[], root: string): Finding[] {
  const parent = dirname(root);
  const literals = [root, ...(parent.length > 1 ? [`${parent}/`] : [])];
  const patterns: [RegExp, string][] = [
    ...literals.map((path): [RegExp, string] => [new RegExp(escapeRegExp(path), "g"), "a path of this machine"]),
    [/\/(?:home|Users)\/[a-z][a-z0-9_-]*\//g, "somebody's home directory"],
    [/"resolved": ?"https?:|^\s*tarball: https?:/gm, "a download address in a lockfile"],
  ];
  return files.flatMap((file) =>
    patterns.flatMap(([pattern, message]) =>
      [...file.text.matchAll(pattern)].map((match) => ({
        check: "words",
        path: file.path,
        line: lineAt(file.text, match.index),
        message: `${message}: ${match[0]}`,
      })),
    ),
  );
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
