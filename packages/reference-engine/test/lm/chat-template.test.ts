import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { golden, POLICY_DIRECTORY } from "./policy.js";

interface Case {
  readonly messages: unknown[];
  readonly tools?: unknown[];
  readonly add_generation_prompt?: boolean;
}

const template = new Template(readFileSync(join(POLICY_DIRECTORY, "chat_template.jinja"), "utf8"));
const cases = JSON.parse(readFileSync(golden("template-cases.json"), "utf8")) as Case[];
const rendered = JSON.parse(readFileSync(golden("template-goldens.json"), "utf8")) as string[];

describe("the policy's chat template", () => {
  it.each(cases.map((entry, index) => [index, entry] as const))(
    "renders case %i as transformers does",
    (index, entry) => {
      const { messages, tools, add_generation_prompt = false } = entry;
      expect(template.render({ messages, tools: tools ?? null, add_generation_prompt })).toBe(rendered[index]);
    },
  );

  it("has a golden for every case", () => {
    expect(rendered).toHaveLength(cases.length);
  });

  it("prints arguments so that JSON without blanks comes back as it was sampled", () => {
    const sampled = '<tool_call>\n{"name": "save", "arguments": {"name": "answer.txt", "text": "95"}}\n</tool_call>';
    const call = { function: { name: "save", arguments: JSON.parse('{"name":"answer.txt","text":"95"}') as unknown } };
    const messages = [{ role: "assistant", content: null, tool_calls: [call] }];
    expect(template.render({ messages, tools: null })).toBe(`<|im_start|>assistant\n${sampled}<|im_end|>\n`);
  });
});
