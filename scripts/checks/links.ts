/** Links inside Markdown files must lead somewhere: promises name the tests that prove them, so a renamed test breaks the build. */
import { posix } from "node:path";
import { type Finding, lineAt, type SourceFile } from "./finding.js";

const LINK = /\]\((?!https?:|mailto:|#)([^)\s]+)\)/g;

/** `exists` answers for a path from the root of the repository. */
export function checkLinks(files: readonly SourceFile[], exists: (path: string) => boolean): Finding[] {
  return files
    .filter((file) => file.path.endsWith(".md"))
    .flatMap((file) =>
      [...file.text.matchAll(LINK)].flatMap((match) => {
        const target = posix.normalize(posix.join(posix.dirname(file.path), decodeURI(match[1]!.split("#")[0]!)));
        if (exists(target)) return [];
        return [
          {
            check: "links",
            path: file.path,
            line: lineAt(file.text, match.index),
            message: `no such file: ${match[1]}`,
          },
        ];
      }),
    );
}
