import type { Message, ToolCall } from "@tito/format";
import { describe, expect, it } from "vitest";
import { canonicalMessage, sameMessage } from "../src/index.js";

const assistant = (more: Partial<Message>): Message => ({ role: "assistant", ...more });

describe("canonical messages", () => {
  it.each<[string, Message, Message]>([
    ["content null, empty and absent", assistant({ content: null }), assistant({})],
    ["content null and empty", assistant({ content: null }), assistant({ content: "" })],
    [
      "a string and its text parts",
      assistant({ content: "ab" }),
      assistant({
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      }),
    ],
    ["developer and system", { role: "developer", content: "x" }, { role: "system", content: "x" }],
    ["reasoning with and without white space", assistant({ reasoning: "why \n" }), assistant({ reasoning: "why" })],
    ["empty reasoning and none", assistant({ reasoning: "" }), assistant({})],
    ["tool calls none and absent", assistant({ tool_calls: [] }), assistant({})],
  ])("%s are equal", (_, a, b) => {
    expect(canonicalMessage(a)).toEqual(canonicalMessage(b));
    expect(sameMessage(a, b).same).toBe(true);
  });

  it("a part that is not text is not the text of its name", () => {
    const image = assistant({ content: [{ type: "other", kind: "image_url" }] });
    expect(sameMessage(image, assistant({ content: "image_url" })).same).toBe(false);
    expect(sameMessage(image, assistant({ content: "" })).same).toBe(false);
  });

  it("says what it kept and what it did not", () => {
    const call = (args: string): ToolCall[] => [{ id: "c", name: "bash", arguments: args }];
    const stored = assistant({ content: null, reasoning: "why ", tool_calls: call('{"a": 1}') });
    const kept = sameMessage(stored, assistant({ content: "", tool_calls: call('{"a":1.0}') }));
    expect(kept).toEqual({
      same: true,
      kept: ["reasoning_absent", "content_shape", "arguments_format"],
      differs: null,
    });
    const broken = sameMessage(
      stored,
      assistant({ content: "text", reasoning: "because", tool_calls: call('{"a":2}') }),
    );
    expect(broken).toEqual({ same: false, kept: [], differs: "reasoning" });
  });

  it("reasoning that appears where none was is another text", () => {
    expect(sameMessage(assistant({ content: "x" }), assistant({ content: "x", reasoning: "new" })).differs).toBe(
      "reasoning",
    );
  });

  it("arguments that are not JSON are compared as text", () => {
    const call = (args: string): Message => assistant({ tool_calls: [{ id: "c", name: "bash", arguments: args }] });
    expect(sameMessage(call('{"a":'), call('{"a":')).same).toBe(true);
    expect(sameMessage(call('{"a":'), call("{}")).differs).toBe("arguments");
    expect(sameMessage(call(""), call("{}")).differs).toBe("arguments");
  });
});
