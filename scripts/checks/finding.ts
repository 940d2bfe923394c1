/** What a check reports. A check is a pure function over the files it is given, so that a test can plant a violation. */
export interface SourceFile {
  /** Path from the root of the repository, with forward slashes. */
  path: string;
  text: string;
}

export interface Finding {
  check: string;
  path: string;
  line: number;
  message: string;
}

/** Line number (from 1) of a character offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
