import { describe, expect, it } from "vitest";
import { cutObject } from "../../src/json/slices.js";
import { templateArgumentsOf } from "../../src/prompt/template-arguments.js";

const read = (body: unknown) => templateArgumentsOf(cutObject(JSON.stringify(body)));

describe("arguments that a request gives to the template", () => {
  it("are chat_template_kwargs and reasoning_effort", () => {
    expect(read({ chat_template_kwargs: { enable_thinking: false }, reasoning_effort: "low" })).toEqual({
      enable_thinking: false,
      reasoning_effort: "low",
    });
    expect(read({ chat_template_kwargs: { reasoning_effort: "high" }, reasoning_effort: "low" })).toEqual({
      reasoning_effort: "high",
    });
  });

  it("are none where the request says nothing, or the body is another dialect's", () => {
    expect(read({ messages: [], chat_template: null, add_generation_prompt: true })).toBeNull();
    expect(templateArgumentsOf(undefined)).toBeNull();
  });

  it.each([
    { chat_template: "{{ messages }}" },
    { documents: [{ text: "a" }] },
    { continue_final_message: true },
    { add_generation_prompt: false },
    { add_special_tokens: true },
    { chat_template_kwargs: { tools_in: { user: true } } },
  ])("are refused where a bundle could not follow: %j", (body) => {
    expect(() => read(body)).toThrow(expect.objectContaining({ code: "unsupported" }));
  });
});
