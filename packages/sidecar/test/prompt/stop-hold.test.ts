import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StopHold } from "../../src/prompt/stop-hold.js";

describe("text before a stop string", () => {
  it("is given out as soon as no stop string can begin in it", () => {
    const hold = new StopHold(["END", "###"]);
    expect(hold.push("one E")).toBe("one ");
    expect(hold.push("gg ##")).toBe("Egg ");
    expect(hold.push("# three")).toBe("");
    expect(hold.flush()).toBe("### three");
  });

  it("is all of it when there is none", () => {
    expect(new StopHold([]).push("END")).toBe("END");
  });

  it("never holds a stop string, however the text is cut, and loses nothing", () => {
    const piece = fc.stringMatching(/^[abc]{0,4}$/);
    const stop = fc.stringMatching(/^[abc]{1,3}$/);
    fc.assert(
      fc.property(fc.array(piece), fc.array(stop, { maxLength: 3 }), (pieces, stops) => {
        const hold = new StopHold(stops);
        const given = pieces.map((text) => hold.push(text)).join("");
        expect(stops.some((one) => given.includes(one))).toBe(false);
        expect(given + hold.flush()).toBe(pieces.join(""));
      }),
    );
  });
});
