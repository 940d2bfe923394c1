/**
 * Prompts that were encoded lately, with the places where encoding can go on: the next prompt of a conversation begins with the last one's chunks,
 * and its ids then begin with ids that are there already.
 */
import { GrowingIds } from "./growing-ids.js";

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
  /** Holds the prompt's ids, and perhaps more. */
  block: GrowingIds;
}

/** Where the encoding of a prompt goes on. */
export interface Resumed {
  /** The states that hold, the last one being where to go on. */
  states: readonly EncodeState[];
  block: GrowingIds;
}

const PROMPTS_MAX = 16;
const AT_START: EncodeState = { at: 0, held: "", bridge: "", ids: 0, escaped: false };

export class RecentPrompts {
  #prompts: Prompt[] = [];

  /** The furthest state that holds for `chunks` too, with the states up to it. */
  resume(chunks: readonly string[]): Resumed {
    let best: Resumed = { states: [AT_START], block: new GrowingIds() };
    for (const prompt of this.#prompts) {
      let common = 0;
      while (common < chunks.length && chunks[common] === prompt.chunks[common]) common++;
      let last = prompt.states.length - 1;
      while (last > 0 && prompt.states[last]!.at > common) last--;
      if (prompt.states[last]!.at > best.states.at(-1)!.at) {
        best = { states: prompt.states.slice(0, last + 1), block: prompt.block };
      }
    }
    return best;
  }

  /** Remembers a prompt and returns its ids: those before the last of the resumed states, then `parts`. */
  add(chunks: readonly string[], states: readonly EncodeState[], resumed: Resumed, parts: readonly Int32Array[]) {
    const { ids, block } = resumed.block.continueWith(resumed.states.at(-1)!.ids, parts);
    // A prompt that went on takes the place of its own beginning.
    const others = this.#prompts.filter((prompt) => prompt.block !== block || prompt.chunks.length > chunks.length);
    this.#prompts = [{ chunks, states, block }, ...others].slice(0, PROMPTS_MAX);
    return ids;
  }
}
