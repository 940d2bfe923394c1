/** Progress of long work on standard error: a line that is rewritten on a terminal, nothing in a pipe. */

const REDRAW_MS = 100;

export interface Progress {
  /** `done` of `total` items; `total` null while it is not known. */
  update(done: number, total: number | null): void;
  finish(): void;
}

export function startProgress(label: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  if (stream.isTTY !== true) return { update: () => {}, finish: () => {} };
  const startedMs = Date.now();
  let drawnMs = 0;
  return {
    update(done, total) {
      const nowMs = Date.now();
      if (nowMs - drawnMs < REDRAW_MS && done !== total) return;
      drawnMs = nowMs;
      const rate = done / Math.max(0.001, (nowMs - startedMs) / 1000);
      const left = total === null || rate === 0 ? "" : ` · ${Math.ceil((total - done) / rate)} s left`;
      stream.write(`\r\x1b[K${label} ${done}${total === null ? "" : `/${total}`} · ${rate.toFixed(1)}/s${left}`);
    },
    finish() {
      stream.write("\r\x1b[K");
    },
  };
}
