import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HermesParser, type MessageDelta } from "../../src/parse/hermes.js";
import type { AnswerPiece } from "../../src/parse/stop-strings.js";
import { parseToolCall } from "../../src/parse/tool-call.js";

const MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>"];
const marker = (text: string): AnswerPiece => ({ marker: { id: 1, content: text, special: false }, text });
const text = (value: string): AnswerPiece => ({ marker: null, text: value });

/** Splits at markers: as ids would. */
function pieces(raw: string): AnswerPiece[] {
  return raw
    .split(/(<\/?think>|<\/?tool_call>)/)
    .filter((part) => part !== "")
    .map((part) => (MARKERS.includes(part) ? marker(part) : text(part)));
}

function parse(parts: AnswerPiece[], options: { startsInReasoning?: boolean; readsToolCalls?: boolean } = {}) {
  const parser = new HermesParser({
    startsInReasoning: false,
    readsToolCalls: true,
    callId: (i) => `call-${i}`,
    ...options,
  });
  return summarize([...parts.flatMap((part) => parser.push(part)), ...parser.end()]);
}

function summarize(deltas: MessageDelta[]) {
  const of = (kind: "content" | "reasoning") => deltas.flatMap((d) => (d.kind === kind ? [d.text] : [])).join("");
  return {
    reasoning: of("reasoning"),
    content: of("content"),
    calls: deltas.flatMap((d) => (d.kind === "tool_call" ? [[d.id, d.name, d.arguments]] : [])),
  };
}

describe("the Hermes parser", () => {
  it("tells reasoning, content and parallel calls apart", () => {
    const raw =
      '<think>hm\n</think>\n\nText <tool_call>\n{"name": "a", "arguments": {"x":  1}}\n</tool_call>\n<tool_call>{"arguments": [], "name": "b"}</tool_call>';
    expect(parse(pieces(raw))).toEqual({
      reasoning: "hm\n",
      content: "\n\nText ",
      calls: [
        ["call-0", "a", '{"x":  1}'],
        ["call-1", "b", "[]"],
      ],
    });
  });

  it("gives a block that is no call back as content, word for word", () => {
    for (const body of [
      '{"name": "a", "arguments": {',
      '{"name": 1, "arguments": {}}',
      '{"name": "a"}',
      "[1]",
      "",
      "\n",
    ]) {
      const raw = `so <tool_call>${body}</tool_call> then`;
      expect(parse(pieces(raw))).toEqual({ reasoning: "", content: raw, calls: [] });
    }
  });

  it("reads a call that was cut off before its end marker if it is complete, else as content", () => {
    expect(parse(pieces('<tool_call>{"name": "a", "arguments": {}}')).calls).toEqual([["call-0", "a", "{}"]]);
    expect(parse(pieces('<tool_call>{"name": "a", "argum')).content).toBe('<tool_call>{"name": "a", "argum');
  });

  it("takes markers that were sampled letter by letter as text", () => {
    const parts = [text("<tool_"), text('call>{"name": "a", "arguments": {}}</tool_call>')];
    expect(parse(parts)).toEqual({
      reasoning: "",
      content: '<tool_call>{"name": "a", "arguments": {}}</tool_call>',
      calls: [],
    });
  });

  it("leaves calls alone when no tools are offered", () => {
    const raw = '<tool_call>{"name": "a", "arguments": {}}</tool_call>';
    expect(parse(pieces(raw), { readsToolCalls: false })).toEqual({ reasoning: "", content: raw, calls: [] });
  });

  it("goes on with a thought that the prompt opened", () => {
    expect(parse(pieces("deep</think>done"), { startsInReasoning: true })).toEqual({
      reasoning: "deep",
      content: "done",
      calls: [],
    });
  });

  it("gives the same message however the text is cut into tokens", () => {
    const answer = fc.array(
      fc.oneof(fc.constantFrom(...MARKERS), fc.constantFrom('{"name": "a", "arguments": {}}', " ", "\n", "word")),
    );
    fc.assert(
      fc.property(answer, (parts) => {
        const whole = pieces(parts.join(""));
        const letters = whole.flatMap((p) => (p.marker === null ? [...p.text].map(text) : [p]));
        expect(parse(letters)).toEqual(parse(whole));
      }),
    );
  });
});

describe("a tool call's arguments", () => {
  it("keep escapes, odd spacing and number spelling", () => {
    const raw = '{ "a" : 1.0 , "b":"\\u00e9\\"}{" , "arguments": 3 }';
    expect(parseToolCall(` {"name":"f","arguments":${raw} } `)).toEqual({ name: "f", arguments: raw });
  });

  it("are the last ones where the key is repeated, and found behind an escaped key", () => {
    expect(parseToolCall('{"arguments": 1, "name": "f", "\\u0061rguments": {"name": "g"}}')).toEqual({
      name: "f",
      arguments: '{"name": "g"}',
    });
  });
});
