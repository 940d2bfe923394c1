/** Anchors: heads of a journal that were kept where the agent can not reach, as NDJSON lines {trajectory, boot, seq, digest, bytes}. */
import { TitoError } from "./errors.js";

/** Head of the journal as it is anchored outside: hex digest, plain numbers, one NDJSON line. docs/format.md#anchors */
export interface AnchoredHead {
  trajectory: string;
  boot: number;
  seq: number;
  digest: string;
  bytes: number;
}

/** The line that goes outside, with its end. */
export function formatAnchor(head: AnchoredHead): string {
  const { trajectory, boot, seq, digest, bytes } = head;
  return `${JSON.stringify({ trajectory, boot, seq, digest, bytes })}\n`;
}

/**
 * Reads anchor lines. Unknown keys and blank lines are skipped, and so is a last line without its end (its writer was killed).
 * Throws `format_invalid` with the line number for anything else.
 */
export function parseAnchors(text: string, where: string): AnchoredHead[] {
  const lines = text.split("\n");
  // what follows the last line end is empty, torn, or one anchor that was copied without its line end
  const last = parseAnchor(lines.pop() ?? "");
  const anchors = lines.flatMap((line, index) => {
    if (line.trim() === "") return [];
    const anchor = parseAnchor(line);
    if (anchor === null) throw new TitoError("format_invalid", `${where}:${index + 1}: not an anchor line`);
    return [anchor];
  });
  return last === null ? anchors : [...anchors, last];
}

/** One anchor, or null when the text is not one. */
export function parseAnchor(line: string): AnchoredHead | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { trajectory, boot, seq, digest, bytes } = value as Record<string, unknown>;
  if (typeof trajectory !== "string" || typeof digest !== "string" || !/^[0-9a-f]{64}$/.test(digest)) return null;
  for (const number of [boot, seq, bytes]) if (!Number.isSafeInteger(number) || (number as number) < 0) return null;
  return { trajectory, boot: boot as number, seq: seq as number, digest, bytes: bytes as number };
}
