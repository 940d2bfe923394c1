/** Logs: one JSON object a line on standard error. Values are data, cut to a length, so that nothing from outside can forge a line. */

export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type Log = (
  level: LogLevel,
  event: string,
  fields?: Readonly<Record<string, string | number | boolean | null>>,
) => void;

const VALUE_CHARS_MAX = 500;

/** `sink` gets whole lines, from `least` on. */
export function createLog(sink: (line: string) => void, least: LogLevel = "info"): Log {
  return (level, event, fields = {}) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(least)) return;
    const cut = Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === "string" ? value.slice(0, VALUE_CHARS_MAX) : value,
    ]);
    sink(`${JSON.stringify({ at: new Date().toISOString(), level, event, ...Object.fromEntries(cut) })}\n`);
  };
}
