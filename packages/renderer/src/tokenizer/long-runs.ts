/**
 * Finds the stretches in which a single pre-tokenizer piece could be very long. The BPE engine is quadratic in the length of a piece:
 * 200 kB of one character would block it for a minute.
 *
 * A piece never crosses from a letter to a digit, to white space or to punctuation (but for a mark or two at its ends), nor back. So it is enough to
 * follow a coarse class per character; a character of unknown class goes with any.
 */

/** Pieces up to this length, in UTF-16 units, go to the BPE engine. Its cost there is some milliseconds per piece at most. */
const PIECE_UNITS_MAX = 512;

const LETTER = 1;
const DIGIT = 2;
const OTHER = 3;
const JOKER = 0;

function asciiClass(code: number): number {
  if ((code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a)) return LETTER;
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  return OTHER;
}

/** Ranges of letters that every Unicode version since 6.0 classifies as letters: first, last, first, last … */
const LETTER_RANGES = [
  0xc0, 0xd6, 0xd8, 0xf6, 0xf8, 0x2af, 0x391, 0x3a1, 0x3a3, 0x3ce, 0x400, 0x481, 0x48a, 0x523, 0x531, 0x556, 0x5d0,
  0x5ea, 0x621, 0x64a, 0x904, 0x939, 0xe01, 0xe30, 0x10d0, 0x10fa, 0x1e00, 0x1eff, 0x3041, 0x3096, 0x30a1, 0x30fa,
  0x3400, 0x4db5, 0x4e00, 0x9fa5, 0xac00, 0xd7a3,
];

/** Coarse class of a UTF-16 unit; JOKER where it is not certain for every Unicode version. */
function coarseClass(code: number, asciiLetters: boolean): number {
  if (code < 0x80) return asciiClass(code);
  if (asciiLetters) return OTHER;
  if (code === 0x3001 || code === 0x3002 || code === 0xff0c || code === 0xff1a) return OTHER;
  for (let i = 0; i < LETTER_RANGES.length; i += 2) {
    if (code < LETTER_RANGES[i]!) return JOKER;
    if (code <= LETTER_RANGES[i + 1]!) return LETTER;
  }
  return JOKER;
}

/** True when every pre-tokenizer ends a piece before `text[at]`, whatever comes before or after: a letter, then a space or a digit. */
function isCertainCut(text: string, at: number, asciiLetters: boolean): boolean {
  const next = text.charCodeAt(at);
  return (next === 0x20 || asciiDigit(next)) && coarseClass(text.charCodeAt(at - 1), asciiLetters) === LETTER;
}

const asciiDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** Stretches `[start, end)` longer than {@link PIECE_UNITS_MAX} in which no coarse class change is certain. Empty for ordinary text. */
function longRuns(text: string, asciiLetters: boolean): [number, number][] {
  const runs: [number, number][] = [];
  if (text.length <= PIECE_UNITS_MAX) return runs;
  let start = 0;
  let current = JOKER;
  for (let i = 0; i <= text.length; i++) {
    const cls = i < text.length ? coarseClass(text.charCodeAt(i), asciiLetters) : -1;
    if (cls === JOKER || cls === current || (cls > 0 && current === JOKER)) {
      if (cls > 0) current = cls;
      continue;
    }
    if (i - start > PIECE_UNITS_MAX) runs.push([start, i]);
    // Jokers before the change may belong to either side.
    let from = i;
    while (from > start && coarseClass(text.charCodeAt(from - 1), asciiLetters) === JOKER) from--;
    start = from;
    current = cls;
  }
  return runs;
}

/**
 * The parts of `text` that must not go to the BPE engine whole, widened to places where every pre-tokenizer cuts; ascending, disjoint.
 */
export function longRegions(text: string, asciiLetters: boolean): [number, number][] {
  const regions: [number, number][] = [];
  for (const [runStart, runEnd] of longRuns(text, asciiLetters)) {
    let start = Math.max(0, runStart - 1);
    while (start > 0 && !isCertainCut(text, start, asciiLetters)) start--;
    let end = Math.min(text.length, runEnd);
    while (end < text.length && !isCertainCut(text, end, asciiLetters)) end++;
    const last = regions.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else regions.push([start, end]);
  }
  return regions;
}
