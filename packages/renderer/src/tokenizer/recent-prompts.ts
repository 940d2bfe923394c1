/**
 * Prompts that were encoded lately, with the places where encoding can go on: the next prompt of a conversation begins with the last one's chunks,
 * and its ids then begin with ids that are there already.
 */

/** Where encoding stands between two chunks. */
export interface EncodeState {
  /** Chunks that were looked at. */
  at: number;
  /** Text that was looked at and is not encoded yet. */
  held: string;
  /** Plain text behind the last added token. */
  bridge: string;
  /** Ids so far. */
  ids: number;
  escaped: boolean;
}

interface Prompt {
  chunks: readonly string[];
  /** Ascending. */
  states: readonly EncodeState[];
  ids: Int32Array;
}

const PROMPTS_MAX = 8;
const AT_START: EncodeState = { at: 0, held: "", bridge: "", ids: 0, escaped: false };

export class RecentPrompts {
  #prompts: Prompt[] = [];

  /** The furthest state that holds for `chunks` too, with the states up to it and the ids before it. */
  resume(chunks: readonly string[]): { states: readonly EncodeState[]; ids: Int32Array } {
    let best: { states: readonly EncodeState[]; ids: Int32Array } = { states: [AT_START], ids: new Int32Array(0) };
    for (const prompt of this.#prompts) {
      let common = 0;
      while (common < chunks.length && chunks[common] === prompt.chunks[common]) common++;
      let last = prompt.states.length - 1;
      while (last > 0 && prompt.states[last]!.at > common) last--;
      const state = prompt.states[last]!;
      if (state.at > best.states.at(-1)!.at) {
        best = { states: prompt.states.slice(0, last + 1), ids: prompt.ids.subarray(0, state.ids) };
      }
    }
    return best;
  }

  add(chunks: readonly string[], states: readonly EncodeState[], ids: Int32Array): void {
    this.#prompts = [{ chunks, states, ids }, ...this.#prompts].slice(0, PROMPTS_MAX);
  }
}
