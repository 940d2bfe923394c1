/** A piece of a stream that is lost, with or without the counts that would show it (O.108). */
import { describe, expect, it } from "vitest";
import { readEngineChunk } from "../../src/sample/engine-chunk.js";
import { Collector } from "../../src/sample/sampled.js";

interface Piece {
  text: string;
  finish?: string;
  usage?: number;
}

/** One id a piece, with the engine's offsets and running counts where `told` says so; `lost` are left out. */
function defects(pieces: Piece[], lost: number[], told: { offsets?: boolean; running?: boolean; counts?: boolean }) {
  const collector = new Collector(null, told.counts ?? false);
  let offset = 0;
  for (const [index, { text, finish, usage }] of pieces.entries()) {
    const at = offset;
    offset += [...text].length;
    if (lost.includes(index)) continue;
    const logprobs = { token_logprobs: [-1], ...(told.offsets === true ? { text_offset: [at] } : {}) };
    const count = usage ?? (told.running === true && finish === undefined ? index + 1 : undefined);
    collector.add(
      readEngineChunk({
        prompt_token_ids: index === 0 ? [1] : undefined,
        choices: [{ index: 0, text, token_ids: [5 + index], logprobs, finish_reason: finish ?? null }],
        ...(count === undefined ? {} : { usage: { prompt_tokens: 1, completion_tokens: count } }),
      }),
    );
  }
  return collector.result().defects;
}

const REPLY: Piece[] = [{ text: "Zoë" }, { text: " has" }, { text: " 🙂" }, { text: " left", finish: "stop" }];
const COUNTED: Piece[] = [...REPLY.slice(0, 3), { text: " left", finish: "stop", usage: 4 }];

describe("a stream without a hole (O.108)", () => {
  it.each([{ offsets: true }, { running: true, counts: true }, { offsets: true, running: true, counts: true }])(
    "is whole evidence (%j)",
    (told) => {
      expect(defects(COUNTED, [], told)).toEqual([]);
    },
  );
});

describe("a hole (O.108)", () => {
  it.each([1, 2])("at piece %i shows in the counts", (hole) => {
    expect(defects(COUNTED, [hole], { counts: true })).toEqual(["completion_count_disagrees"]);
  });

  it.each([1, 2])("at piece %i shows in the offsets of an engine that counts nothing", (hole) => {
    expect(defects(REPLY, [hole], { offsets: true })).toEqual(["token_positions_disagree", "usage_missing"]);
  });

  it("shows in running counts that end before the reply does", () => {
    expect(defects(REPLY, [2], { running: true, counts: true })).toEqual(expect.arrayContaining(["usage_lost"]));
  });

  it("in front of a finish without ids shows, although all counts that came agree", () => {
    const collector = new Collector(null, true);
    const usage = { prompt_tokens: 1, completion_tokens: 1 };
    const choice = { index: 0, token_ids: [5], logprobs: { token_logprobs: [-1] } };
    collector.add(readEngineChunk({ prompt_token_ids: [1], choices: [choice], usage }));
    collector.add(readEngineChunk({ choices: [{ index: 0, finish_reason: "stop" }] }));
    expect(collector.result().defects).toEqual(["usage_lost"]);
  });

  it("is not seen where text is held back, nor in a reply that goes on behind an abort", () => {
    const collector = new Collector(Int32Array.of(1));
    const piece = (text: string, offset: number, id: number) =>
      readEngineChunk({
        choices: [{ index: 0, text, token_ids: [id], logprobs: { token_logprobs: [-1], text_offset: [offset] } }],
      });
    for (const [text, offset] of [
      ["", 0],
      ["ab", 0],
      ["", 2],
      ["c", 2],
    ] as const)
      collector.add(piece(text, offset, 5));
    collector.resume(null, null);
    collector.add(piece("d", 0, 6));
    expect(collector.result().defects).not.toContain("token_positions_disagree");
  });
});
