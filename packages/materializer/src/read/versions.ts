/** Weight versions as numbers, so that an age can be told. Pure. */

/** Between the oldest and the newest version that a span may have been sampled under: `120..125`, where weights changed meanwhile. */
const RANGE = "..";

/** The numbers of the oldest and the newest weights that a version names; equal but for a range. */
export interface VersionNumbers {
  oldest: number;
  newest: number;
}

/** The last part of a name is a commit or a digest: that it ends with a digit is chance. */
const HASH = /(^|[^0-9a-z])(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}$/i;

/**
 * The number that a version name ends with: `120`, `step-120`, `policy/v120` → 120; of a range the oldest and the newest of its ends.
 * Null when one ends otherwise, is a hash (`9f3c2d1`), or has more digits than a number keeps. Names that share no numbering cannot be compared and count as unknown.
 */
export function versionNumbers(version: string): VersionNumbers | null {
  const ends = version.split(RANGE).map((name) => (HASH.test(name) ? null : /(?<!\d)(\d{1,15})$/.exec(name)));
  const numbers = ends.flatMap((match) => (match === null ? [] : [Number(match[1])]));
  if (numbers.length < ends.length) return null;
  return { oldest: Math.min(...numbers), newest: Math.max(...numbers) };
}
