/** The shape of a file: its size, its name, its opening, and tests that really run. Function length is Biome's. */
import { type Finding, lineAt, type SourceFile } from "./finding.js";

const SOURCE_LINES_MAX = 500;

export function checkShape(files: readonly SourceFile[]): Finding[] {
  return files.filter((file) => file.path.endsWith(".ts")).flatMap((file) => [...checkFile(file), ...checkMarks(file)]);
}

function checkFile(file: SourceFile): Finding[] {
  const findings: Finding[] = [];
  const report = (message: string) => findings.push({ check: "shape", path: file.path, line: 1, message });
  const lines = file.text.split("\n").length - 1;
  const isTest = /\/test\//.test(file.path);
  if (!isTest && lines > SOURCE_LINES_MAX)
    report(`${lines} lines; ${SOURCE_LINES_MAX} at most: which two ideas are in it?`);
  if (/(^|\/)(utils|helpers|misc|common)\.ts$/.test(file.path)) report("name a file after its one idea");
  if (!/(^|\/)[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*\.ts$/.test(file.path)) report("file names are kebab-case");
  if (
    /^packages\/[^/]+\/src\/index\.ts$/.test(file.path) &&
    !/^\/\*\*[\s\S]*?owns[\s\S]*?never[\s\S]*?\*\//.test(file.text)
  ) {
    report("index.ts opens with what the package owns and never does");
  }
  return findings;
}

const MARKS: readonly [RegExp, string][] = [
  [/\b(?:it|test|describe)\.(?:only|todo)\b/g, "a test that hides others or does not exist yet"],
  [/\b(?:it|test|describe)\.skip\s*\(/g, "skip with a printed reason instead"],
  [/\bexpect\(true\)/g, "a test that cannot fail"],
  [/\b(?:TO|FIX)(?:DO|ME)\b/g, "unfinished business"],
  [/\bsetTimeout\s*\(\s*(?:resolve|r|done)\s*,\s*[1-9]/g, "a sleep as synchronisation"],
];

function checkMarks(file: SourceFile): Finding[] {
  if (file.path.startsWith("scripts/checks/") || file.path.startsWith("scripts/test/")) return [];
  return MARKS.flatMap(([pattern, message]) =>
    [...file.text.matchAll(pattern)]
      .filter((match) => !match[0].includes("setTimeout") || /\/test\//.test(file.path))
      .map((match) => ({
        check: "shape",
        path: file.path,
        line: lineAt(file.text, match.index),
        message: `${match[0]}: ${message}`,
      })),
  );
}
