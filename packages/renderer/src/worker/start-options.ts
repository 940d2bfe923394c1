/** How a renderer's thread is started. */
import type { TitoError } from "@tito/format";

export interface StartOptions {
  /** Where the thread's code is; default is the file beside this one, else the program's own file. Text is run as a script. */
  worker?: URL | { source: string };
  /** The thread ended and is started again, for the nth time without an answer between. */
  onRestart?: (restarts: number) => void;
  /** The thread is given up: every call fails from now on. */
  onLost?: (error: TitoError) => void;
}
