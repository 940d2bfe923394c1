import { ApiError } from "../errors.js";

/** What a pause does with the answers under way: end them, let them end, or freeze them until the engine resumes. */
export const PAUSE_MODES = ["abort", "wait", "keep"] as const;
export type PauseMode = (typeof PAUSE_MODES)[number];

/** One answer under way. */
export interface Passage {
  /** Fires when the answer must end now, with finish reason `abort`. */
  readonly aborted: AbortSignal;
  /** Waits while the engine is paused with mode `keep`; returns at once otherwise, and when a signal fires. */
  untilRunning(signal: AbortSignal): Promise<void>;
  leave(): void;
}

/** The requests that are between the door and their last token, and the door itself. */
export class Traffic {
  readonly #passages = new Map<Passage, AbortController>();
  #pause: { readonly mode: PauseMode; readonly over: Promise<void>; readonly resume: () => void } | null = null;
  readonly #emptied = new Set<() => void>();

  get paused(): boolean {
    return this.#pause !== null;
  }

  /** Waits at the door while the engine is paused. Throws when the client goes meanwhile. */
  async admit(signal: AbortSignal): Promise<void> {
    while (this.#pause !== null) {
      await orSignal(this.#pause.over, signal);
      if (signal.aborted) throw new ApiError(499, "BadRequestError", "the client has gone");
    }
  }

  /** Counts an answer in. */
  enter(): Passage {
    const controller = new AbortController();
    const passage: Passage = {
      aborted: controller.signal,
      untilRunning: async (signal) => {
        while (this.#pause?.mode === "keep" && !signal.aborted) await orSignal(this.#pause.over, signal);
      },
      leave: () => {
        this.#passages.delete(passage);
        if (this.#passages.size > 0) return;
        for (const resolve of this.#emptied) resolve();
        this.#emptied.clear();
      },
    };
    this.#passages.set(passage, controller);
    return passage;
  }

  /** Ends all answers under way with finish reason `abort`. Says how many. */
  abortAll(): number {
    for (const controller of this.#passages.values()) controller.abort();
    return this.#passages.size;
  }

  /** Closes the door. Resolves when nothing samples any more. A second pause replaces the mode of the first. */
  async pause(mode: PauseMode): Promise<void> {
    let resume = () => {};
    const over = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const before = this.#pause;
    this.#pause = { mode, over, resume };
    before?.resume();
    if (mode === "abort") this.abortAll();
    if (mode !== "keep") await this.#empty();
  }

  /** Opens the door and thaws what was frozen. */
  resume(): void {
    const before = this.#pause;
    this.#pause = null;
    before?.resume();
  }

  async #empty(): Promise<void> {
    if (this.#passages.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied.add(resolve);
    });
  }
}

async function orSignal(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let stop = () => {};
  const gone = new Promise<void>((resolve) => {
    stop = resolve;
    signal.addEventListener("abort", stop, { once: true });
  });
  await Promise.race([promise, gone]);
  signal.removeEventListener("abort", stop);
}
