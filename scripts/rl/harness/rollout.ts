/** What every harness of the loop gets and gives. */
import type { DemoTask } from "@tito/reference-engine";

/** One rollout for a harness to play. */
export interface Play {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The user's message. */
  readonly prompt: string;
  /** Working directory that the harness names to the model. */
  readonly directory: string;
  /** Takes what the tool `save` writes. */
  readonly files: Map<string, string>;
  readonly signal: AbortSignal;
}

/** One message of the conversation as the harness holds it at the end. */
export interface TranscriptMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly reasoning: string | null;
  /** Arguments as the harness parsed them. */
  readonly toolCalls: readonly { readonly name: string; readonly arguments: Record<string, unknown> }[];
}

/** Model calls of one rollout; a policy that never ends is stopped behind them. */
export const CALLS_MAX = 6;

/** Everything that the harness knows afterwards: no token, no log probability. */
export type Transcript = readonly TranscriptMessage[];

/** Plays until the model answers without a tool call. Rejects when the harness gives up. */
export type Harness = (play: Play) => Promise<Transcript>;

/** Whether the file that the task asks for holds the expected text, outer blanks aside. */
export function isSolved(task: Pick<DemoTask, "expected">, files: ReadonlyMap<string, string>): boolean {
  return files.get(task.expected.file)?.trim() === task.expected.text;
}
