/** How many ids differ where two lines part: up to where both go on alike. */

export interface IdChange {
  /** Ids of the earlier line, and of the prompt, from the first difference to where both agree again. */
  earlier: number;
  now: number;
}

/** Equal ids after which two lines are taken to agree again; fewer are enough where one of the two ends with them. */
const RUN_IDS = 4;
/** As many are no chance agreement on a phrase that occurs twice: nothing longer is looked for. */
const CERTAIN_RUN_IDS = 16;
/** Longest change that is looked for with any lengths on both sides. */
const CHANGE_IDS_MAX = 256;
/** A longer one is found where one side is this short: a block of the reply that a template leaves out, or one that it puts in. */
const SHORT_SIDE_MAX = 8;
const PUT_IN_MAX = 1024;

/**
 * The shortest change after which both lines certainly agree again: for long, or from inside the reply to its end at `end`. Else the one
 * with the longest agreement; null when they never agree.
 */
export function changeAt(line: Int32Array, prompt: Int32Array, at: number, end: number): IdChange | null {
  let best: IdChange | null = null;
  let longest = RUN_IDS - 1;
  for (const change of candidates(end - at)) {
    const from = at + change.earlier;
    const { length, ended } = agreement(line, from, prompt, at + change.now);
    const toTheEnd = ended || (from < end && from + length >= end);
    if (length > 0 && (toTheEnd || length >= CERTAIN_RUN_IDS)) return change;
    if (length <= longest) continue;
    longest = length;
    best = change;
  }
  return best;
}

/** Changes from short to long; `rest` ids of the reply are left. */
function* candidates(rest: number): Generator<IdChange> {
  for (let total = 1; total <= CHANGE_IDS_MAX; total++)
    for (let earlier = 0; earlier <= total; earlier++) yield { earlier, now: total - earlier };
  for (let length = CHANGE_IDS_MAX - SHORT_SIDE_MAX; length <= Math.max(rest, PUT_IN_MAX); length++)
    for (let short = 0; short <= SHORT_SIDE_MAX; short++) {
      if (length <= rest) yield { earlier: length, now: short };
      if (length <= PUT_IN_MAX) yield { earlier: short, now: length };
    }
}

/** Equal ids from two places on, as far as it matters. */
function agreement(line: Int32Array, a: number, prompt: Int32Array, b: number): { length: number; ended: boolean } {
  const most = Math.min(CERTAIN_RUN_IDS, line.length - a, prompt.length - b);
  let length = 0;
  while (length < most && line[a + length] === prompt[b + length]) length++;
  return { length, ended: length === most };
}
