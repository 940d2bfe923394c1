/** Values that carry the id they belong to, for ids of which some have no value: which value is whose, where that is certain. */

/**
 * For each id the index of its value, or null. The values are those of a subsequence of `ids`, in order. A value that could belong to more than one place belongs to none.
 * Null when they are no such subsequence.
 */
export function placeById(ids: readonly number[], valueIds: readonly (number | null)[]): (number | null)[] | null {
  const first = placesFrom(ids, valueIds);
  const mirrored = placesFrom([...ids].reverse(), [...valueIds].reverse());
  if (first === null || mirrored === null) return null;
  const placed: (number | null)[] = ids.map(() => null);
  for (const [index, at] of first.entries()) {
    const last = ids.length - 1 - mirrored[valueIds.length - 1 - index]!;
    if (at === last) placed[at] = index;
  }
  return placed;
}

/** The earliest place of each value; null when one has none. */
function placesFrom(ids: readonly number[], valueIds: readonly (number | null)[]): number[] | null {
  const places: number[] = [];
  let at = 0;
  for (const id of valueIds) {
    while (at < ids.length && ids[at] !== id) at += 1;
    if (at >= ids.length) return null;
    places.push(at);
    at += 1;
  }
  return places;
}
