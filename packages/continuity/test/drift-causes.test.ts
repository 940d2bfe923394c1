/** The cause of a drift against an oracle that knows which edit was made. */
import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { applies, causeOf, type DriftCase, REPLIES, SUFFIXES } from "./drift-cases.js";
import { DriftModel, EDITS } from "./drift-model.js";
import { Random } from "./random-harness.js";

const TOKENIZINGS = ["letters", "runs"] as const;

/** Every kind of reply at the edited place, alone, first, in the middle and last. */
function* casesOf(name: string): Generator<DriftCase> {
  for (const kind of REPLIES)
    for (const others of [[], ["call"], ["text", "call_with_text"]] as const)
      for (let place = 0; place <= others.length; place++)
        for (const suffix of SUFFIXES)
          for (const tokenizing of TOKENIZINGS)
            for (const texts of [false, true]) {
              const replies = [...others.slice(0, place), kind, ...others.slice(place)];
              const opens = others.length === 1;
              yield { edit: EDITS[name]!, replies, place, suffix, tokenizing, opens, texts };
            }
}

describe("O.120 the cause of a drift is what was done to the history", () => {
  it.each(Object.keys(EDITS))("%s: on every reply, at every place, whatever follows", (name) => {
    const wrong = new Map<string, number>();
    let count = 0;
    for (const one of casesOf(name)) {
      if (!applies(one)) continue;
      count += 1;
      const cause = causeOf(one);
      if (cause === one.edit.cause) continue;
      const { edit: _, ...where } = one;
      const line = `${cause}: ${JSON.stringify(where)}`;
      wrong.set(line, 1);
    }
    expect(count).toBeGreaterThan(10);
    expect([...wrong.keys()].slice(0, 12)).toEqual([]);
  });

  it.each(TOKENIZINGS)(
    "every reply in tokens of its own: each turn drifts from the last one, for the same cause (%s)",
    (tokenizing) => {
      for (const texts of [false, true]) {
        const model = new DriftModel(tokenizing, texts);
        const split = new Map([["Looking", ["Lo", "ok", "ing"]]]);
        const messages: Message[] = [{ role: "user", content: "go" }];
        const causes: (string | null)[] = [];
        for (let turn = 0; turn < 8; turn++) {
          const reply: Message = { role: "assistant", content: `Looking at part ${turn}` };
          causes.push(model.ask([...messages], reply, {}, { split }).evidence.cause);
          messages.push(reply, { role: "user", content: `next ${turn}` });
        }
        expect(causes).toEqual([null, ...Array.from({ length: 7 }, () => "retokenised")]);
      }
    },
  );

  it.each([1, 2, 3])(
    "random conversations: the confusion matrix has no entry beside its diagonal (seed %i)",
    (seed) => {
      const random = new Random(seed);
      const matrix = new Map<string, number>();
      let right = 0;
      for (let tries = 0; tries < 1500; tries++) {
        const name = random.pick(Object.keys(EDITS));
        const replies = Array.from({ length: 1 + random.below(5) }, () => random.pick(REPLIES));
        const one: DriftCase = {
          edit: EDITS[name]!,
          replies,
          place: random.below(replies.length),
          suffix: random.pick(SUFFIXES),
          tokenizing: random.pick(TOKENIZINGS),
          opens: random.chance(0.5),
          texts: random.chance(0.5),
        };
        if (!applies(one)) continue;
        const cause = causeOf(one);
        if (cause === one.edit.cause) right += 1;
        else matrix.set(`${name} → ${cause}`, (matrix.get(`${name} → ${cause}`) ?? 0) + 1);
      }
      expect(Object.fromEntries(matrix)).toEqual({});
      expect(right).toBeGreaterThan(500);
    },
  );
});
