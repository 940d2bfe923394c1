/** Ctrl-C of long work: the first one asks it to stop at the next safe place, the second one ends the process as always. */

/** What a shell reports for a command that SIGINT ended. */
export const INTERRUPTED_EXIT = 130;

/** A signal that SIGINT and SIGTERM abort; `release` gives both their usual effect back. */
export function interruptible(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const release = () => {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  };
  const stop = () => {
    release();
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return { signal: controller.signal, release };
}
