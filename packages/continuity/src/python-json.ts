/** Would a chat template spell these arguments otherwise? Templates print JSON as Python does: one space behind each colon and comma. */
import { canonicalJson } from "./json-text.js";

/** Strings, and what stands between them. */
const PIECES = /"(?:[^"\\]|\\.)*"|[^"]+/gs;
/** An escape that Python's writer, told to leave letters alone, does not write. */
const OTHER_ESCAPE = /\\(?:\/|u(?!00[01]))/;
/** A number that Python writes otherwise. */
const OTHER_NUMBER = /[eE+]/;

/**
 * By how many characters a template's own spelling is longer (negative: shorter); null when it is the same spelling, or the text is not JSON
 * and is printed as it is.
 */
export function respelledBy(args: string): number | null {
  if (canonicalJson(args) === null) return null;
  let spaces = 0;
  let wanted = 0;
  let other = false;
  let between = "";
  for (const [piece] of args.matchAll(PIECES)) {
    if (piece.startsWith('"')) {
      other ||= OTHER_ESCAPE.test(piece.replaceAll("\\\\", ""));
      between += '"';
      continue;
    }
    spaces += piece.match(/\s/g)?.length ?? 0;
    wanted += piece.match(/[:,]/g)?.length ?? 0;
    other ||= OTHER_NUMBER.test(piece.replace(/true|false|null/g, ""));
    between += piece;
  }
  const spelled = between.replace(/\s+/g, "").replace(/[:,]/g, "$& ");
  return spelled === between && !other ? null : wanted - spaces;
}
