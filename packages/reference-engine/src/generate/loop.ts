import { setImmediate, setTimeout } from "node:timers/promises";
import type { FaultHooks } from "../faults/hooks.js";
import type { Vocabulary } from "../model/vocabulary.js";
import { Detokenizer } from "../parse/detokenizer.js";
import { type AnswerPiece, StopStrings } from "../parse/stop-strings.js";
import type { Draw, Sampler } from "../policy/policy.js";
import { type Finish, finishAt, type StopRules } from "./stop-rules.js";
import type { Passage } from "./traffic.js";
import { extendSpans, type WeightVersion, type WeightVersionSpan } from "./weight-version.js";

/** What one choice has come to so far; the request log is written from it. */
export interface ChoiceRecord {
  ids: number[];
  logprobs: number[];
  weightVersions: WeightVersionSpan[];
  finish: Finish | null;
}

export interface ChoiceLoop {
  sampler: Sampler;
  stop: StopRules;
  skipSpecialTokens: boolean;
  vocabulary: Vocabulary;
  weightVersion: WeightVersion;
  hooks: FaultHooks;
  passage: Passage;
  /** Fires when the client has gone. */
  signal: AbortSignal;
  /** Wait before each token. */
  delayMs: number;
  record: ChoiceRecord;
}

/** The tokens sampled in one step (one, none when a script ended, several when coalesced), the text that became certain with it, and the end if it is the last. */
export interface Step {
  draws: Draw[];
  pieces: AnswerPiece[];
  finish: Finish | null;
}

/**
 * Samples one choice, token by token; the last step carries the finish. Between tokens every other request gets its turn.
 * Ends without a finish when the client has gone. Throws `Interrupted` when a fault strikes.
 */
export async function* sampleChoice(loop: ChoiceLoop): AsyncGenerator<Step, void, void> {
  const text = new AnswerText(loop);
  const delayMs = loop.delayMs + loop.sampler.delayMs + loop.hooks.delayMs;
  const either = AbortSignal.any([loop.signal, loop.passage.aborted]);
  const { emptyFinish } = loop.hooks;
  if (emptyFinish !== null) return yield endStep(loop, text, { reason: emptyFinish, stopReason: null });
  for (;;) {
    await pause(delayMs, either);
    await loop.passage.untilRunning(either);
    const aborted = await loop.hooks.beforeToken(loop.record.ids.length, either);
    if (loop.signal.aborted) return;
    if (aborted || loop.passage.aborted.aborted)
      return yield endStep(loop, text, { reason: "abort", stopReason: null });
    const draw = loop.sampler.next();
    if (draw === null) {
      const cutShort = await loop.hooks.atEnd(either);
      return yield endStep(loop, text, { reason: cutShort ? "abort" : "length", stopReason: null });
    }
    keep(loop, draw);
    const { pieces, finish } = text.push(draw.id, finishAt(loop.stop, draw.id, loop.record.ids.length));
    if (finish === null) {
      yield { draws: [draw], pieces, finish };
      continue;
    }
    const cutShort = await loop.hooks.atEnd(either);
    if (loop.signal.aborted) return;
    loop.record.finish = cutShort ? { reason: "abort", stopReason: null } : finish;
    return yield { draws: [draw], pieces, finish: loop.record.finish };
  }
}

async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  if (delayMs === 0) await setImmediate();
  // A client that goes while we wait is noticed by the caller.
  else await setTimeout(delayMs, undefined, { signal }).catch(() => {});
}

function keep(loop: ChoiceLoop, draw: Draw): void {
  const { record } = loop;
  extendSpans(record.weightVersions, loop.weightVersion.current, record.ids.length);
  record.ids.push(draw.id);
  record.logprobs.push(draw.logprob);
}

function endStep(loop: ChoiceLoop, text: AnswerText, finish: Finish): Step {
  loop.record.finish = finish;
  return { draws: [], pieces: text.flush(), finish };
}

/** The text side of a choice: characters, hidden tokens and stop strings. */
class AnswerText {
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #rules: StopRules;

  constructor(loop: ChoiceLoop) {
    this.#rules = loop.stop;
    this.#detokenizer = new Detokenizer(loop.vocabulary, loop.skipSpecialTokens);
    this.#stops = new StopStrings(loop.stop.stopStrings, loop.stop.includeStopText);
  }

  /** Adds a token that ends the answer with `finish`, or may end it with a stop string. */
  push(id: number, finish: Finish | null): { pieces: AnswerPiece[]; finish: Finish | null } {
    const hidden = finish?.reason === "stop" && !this.#rules.includeStopText;
    const fresh = hidden ? [] : this.#detokenizer.push(id);
    const pieces: AnswerPiece[] = [];
    for (const piece of finish === null ? fresh : [...fresh, ...this.#detokenizer.flush()]) {
      const pushed = this.#stops.push(piece);
      pieces.push(...pushed.pieces);
      if (pushed.match !== null) return { pieces, finish: { reason: "stop", stopReason: pushed.match.stopString } };
    }
    if (finish !== null) pieces.push(...this.#stops.flush());
    return { pieces, finish };
  }

  flush(): AnswerPiece[] {
    const pieces = this.#detokenizer.flush().flatMap((piece) => this.#stops.push(piece).pieces);
    return [...pieces, ...this.#stops.flush()];
  }
}
