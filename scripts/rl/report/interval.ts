/** Wilson's 95 % interval of a share: for k of n, the shares that n draws do not contradict. */
export function interval95(solved: number, rollouts: number): { low: number; high: number } {
  if (rollouts === 0) return { low: 0, high: 1 };
  const z = 1.959964;
  const share = solved / rollouts;
  const scale = 1 + (z * z) / rollouts;
  const middle = (share + (z * z) / (2 * rollouts)) / scale;
  const half = (z / scale) * Math.sqrt((share * (1 - share)) / rollouts + (z * z) / (4 * rollouts * rollouts));
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}
