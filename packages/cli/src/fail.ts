/** How a command fails: one clear line on standard error, a hint, and the exit code of docs/errors.md. */
import { fromSystem, TitoError } from "@tito/format";

const INTERNAL_EXIT = 70;

/** Prints what went wrong and answers the exit code. A bug keeps its stack: it has to be reported. */
export function reportFailure(thrown: unknown, json: boolean): number {
  const error = fromSystem(thrown);
  if (TitoError.is(error)) {
    if (json)
      console.error(JSON.stringify({ error: { code: error.code, message: error.message, hint: error.hint ?? null } }));
    else console.error(`tito: ${error.message}${error.hint === undefined ? "" : `\n  ${error.hint}`}`);
    return error.exitCode;
  }
  console.error(`tito: internal error: ${error instanceof Error ? error.stack : String(error)}`);
  return INTERNAL_EXIT;
}

/** What `read` gives, or null when it can not be read: that is told to `onUnread`, and the others are read all the same. A bug is thrown on. */
export function tryReading<T>(read: () => T, onUnread: (error: TitoError) => void): T | null {
  try {
    return read();
  } catch (thrown) {
    const error = fromSystem(thrown);
    if (!TitoError.is(error)) throw thrown;
    onUnread(error);
    return null;
  }
}
