/** Weight versions as numbers, so that an age can be told. Pure. */

/**
 * The number that a version name ends with: `120`, `step-120`, `policy/v120` → 120; null when it ends otherwise.
 * Names that share no numbering cannot be compared and count as unknown.
 */
export function versionNumber(version: string): number | null {
  const match = /(\d{1,15})$/.exec(version);
  return match ? Number(match[1]) : null;
}
