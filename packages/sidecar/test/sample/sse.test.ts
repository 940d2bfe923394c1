import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseParser } from "../../src/sample/sse.js";

const EVENTS = ['{"a":"é🤔"}', "[DONE]", "x", "two\nlines", " leading space"];

function wire(lineEnding: string): Buffer {
  const lines = EVENTS.flatMap((event) => [
    ": comment",
    "event: ignored",
    ...event.split("\n").map((line) => `data: ${line}`),
    "",
  ]);
  return Buffer.from([...lines, ""].join(lineEnding));
}

function parse(bytes: Buffer, cuts: readonly number[]): string[] {
  const parser = new SseParser();
  const events: string[] = [];
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    events.push(...parser.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return [...events, ...parser.push(bytes.subarray(from)), ...parser.end()];
}

describe("server-sent events", () => {
  it.each(["\n", "\r\n", "\r"])("are the same for any chunk boundaries (line ending %j)", (ending) => {
    const bytes = wire(ending);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
        expect(parse(bytes, cuts)).toEqual(EVENTS);
      }),
    );
    expect(parse(bytes, [...bytes.keys()])).toEqual(EVENTS);
  });

  it("need no space after the colon, and a data line may be empty", () => {
    expect(parse(Buffer.from("data:a\n\ndata\n\ndata:\ndata:b\n\n"), [])).toEqual(["a", "", "\nb"]);
  });

  it("are dropped when the stream ends inside one", () => {
    expect(parse(Buffer.from('data: whole\n\ndata: {"half"'), [])).toEqual(["whole"]);
    expect(parse(Buffer.from('data: whole\n\ndata: {"half"\n'), [])).toEqual(["whole"]);
  });

  it("ignore fields that only begin with data", () => {
    expect(parse(Buffer.from("database: x\ndata: y\n\n"), [])).toEqual(["y"]);
  });
});
