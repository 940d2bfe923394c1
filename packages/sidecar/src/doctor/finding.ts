/** What a diagnosis says, one line each. */

/** `failure`: something will go wrong here. `warning`: it works, and less holds than could. `skipped`: not looked at, and why. */
export type Level = "ok" | "warning" | "failure" | "skipped";

export interface Finding {
  /** Stable name, for scripts. */
  check: string;
  level: Level;
  /** What was seen, with figures. */
  message: string;
  /** What to do about it; null where there is nothing to do. */
  hint: string | null;
}

export function finding(check: string, level: Level, message: string, hint: string | null = null): Finding {
  return { check, level, message, hint };
}

/** In words, for a message: a system error's code says more than its text. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return code?.startsWith("E") === true ? code : error.message;
}
