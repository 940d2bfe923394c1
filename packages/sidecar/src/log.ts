/** Logs: one JSON object a line on standard error. Values are data, cut to a length, so that nothing from outside can forge a line. */

export type LogLevel = "info" | "warn" | "error";
export type Log = (
  level: LogLevel,
  event: string,
  fields?: Readonly<Record<string, string | number | boolean | null>>,
) => void;

const VALUE_CHARS_MAX = 500;

/** `sink` gets whole lines. */
export function createLog(sink: (line: string) => void): Log {
  return (level, event, fields = {}) => {
    const cut = Object.entries(fields).map(([key, value]) => [
      key,
      typeof value === "string" ? value.slice(0, VALUE_CHARS_MAX) : value,
    ]);
    sink(`${JSON.stringify({ at: new Date().toISOString(), level, event, ...Object.fromEntries(cut) })}\n`);
  };
}
