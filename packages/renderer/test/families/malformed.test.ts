import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../src/families/families.js";
import { openByteRenderer } from "../byte-bundles.js";

const HERMES = '<tool_call>\n{"name": "bash", "arguments": \n</tool_call>';
const QWEN_XML = "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>";
const GLM = "<tool_call>bash<arg_key>command</arg_key>ls</tool_call>";
const DSML = (block: string): string =>
  `<｜DSML｜${block}>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="n" string="false">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜${block}>`;
const DEEPSEEK = (call: string): string =>
  `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>${call}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`;
const M3 = "]<]minimax[>[";

/** A turn of each family whose call breaks off, does not close or is no JSON. */
const BROKEN: Record<string, string> = {
  demo: HERMES,
  "qwen2.5": HERMES,
  qwen3: HERMES,
  "qwen3-coder": QWEN_XML,
  "qwen3.5": QWEN_XML,
  "glm-4.6": GLM,
  "glm-4.7": GLM,
  "glm-5": GLM,
  "glm-5.3": GLM,
  "kimi-k2":
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"a": <|tool_call_end|><|tool_calls_section_end|>',
  "kimi-k3": 'hm<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="bash"<|sep|>',
  "deepseek-v3": DEEPSEEK("function<｜tool▁sep｜>bash\n```json\n{\n```"),
  "deepseek-v3.1": DEEPSEEK("bash<｜tool▁sep｜>[1]"),
  "deepseek-v3.2": DSML("function_calls"),
  "deepseek-v4": DSML("tool_calls"),
  "gpt-oss": "<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{not json",
  "llama-3.1": '<|python_tag|>{"name": "bash"}',
  "llama-3.2": '<|python_tag|>{"name": "bash"}',
  "llama-3.3": "<|python_tag|>print(1)",
  "minimax-m2": '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="c">ls</invoke>\n</minimax:tool_call>',
  "minimax-m3": `${M3}<tool_call>\n${M3}<invoke name="bash">${M3}<c>ls${M3}</invoke>\n${M3}</tool_call>`,
};

describe("a call that does not follow the family's form", () => {
  it.each(Object.keys(FAMILIES))("of %s reaches the harness as raw text with the flag set", async (family) => {
    const renderer = await openByteRenderer(family);
    const sampled = renderer.tokenizer.encode(BROKEN[family]!);
    const context = { promptTail: new Int32Array(0), promptTokens: 9, tools: [] };
    const { message, malformed } = renderer.parse(sampled, context);
    expect(malformed).toBe(true);
    expect(message).toEqual({ role: "assistant", content: BROKEN[family] });
  });
});

/** What ends a call, by family; the others have no mark for it, or read it in its place only. */
const ENDS: Record<string, string> = {
  ...Object.fromEntries(
    ["demo", "qwen2.5", "qwen3", "qwen3-coder", "qwen3.5", "glm-4.6", "glm-4.7", "glm-5", "glm-5.3"].map((family) => [
      family,
      "</tool_call>",
    ]),
  ),
  "kimi-k2": "<|tool_call_end|><|tool_calls_section_end|>",
  "deepseek-v3": "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
  "deepseek-v3.1": "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
  "deepseek-v3.2": "</｜DSML｜function_calls>",
  "deepseek-v4": "</｜DSML｜tool_calls>",
  "minimax-m2": "</minimax:tool_call>",
};

describe("the end of a call that never began", () => {
  it.each(Object.entries(ENDS))("of %s is raw text with the flag set", async (family, end) => {
    const renderer = await openByteRenderer(family);
    const text = `{"name": "bash", "arguments": {}}${end}`;
    const context = { promptTail: new Int32Array(0), promptTokens: 9, tools: [] };
    const { message, malformed } = renderer.parse(renderer.tokenizer.encode(text), context);
    expect(malformed).toBe(true);
    expect(message).toEqual({ role: "assistant", content: text });
  });
});

describe("tool-call ids", () => {
  it("are the same for the same ids at the same place, and differ by place, ids and order", async () => {
    const renderer = await openByteRenderer("demo");
    const idsOf = (text: string, promptTokens: number): string[] => {
      const context = { promptTail: new Int32Array(0), promptTokens, tools: [] };
      const { message } = renderer.parse(renderer.tokenizer.encode(text), context);
      return (message.tool_calls ?? []).map((call) => call.id);
    };
    const call = '<tool_call>\n{"name": "bash", "arguments": {}}\n</tool_call>';
    const [first, second] = idsOf(call + call, 9);
    expect(first).toMatch(/^call_[0-9a-f]{24}$/);
    expect(idsOf(call + call, 9)).toEqual([first, second]);
    expect(new Set([first, second, ...idsOf(call, 9), ...idsOf(call, 10)]).size).toBe(4);
  });
});

/** The ids of an answer, as the family's template prints it behind a question. */
async function answerOf(family: string, answer: string) {
  const renderer = await openByteRenderer(family);
  const history: Message[] = [{ role: "user", content: "Why?" }];
  const prompt = renderer.render(history, []).ids;
  const reply: Message = { role: "assistant", content: answer };
  if (renderer.family.carries.reasoning({}) === "always") reply.reasoning = "because";
  const whole = renderer.render([...history, reply], [], { generationPrompt: false }).ids;
  const context = { promptTail: prompt, promptTokens: prompt.length, tools: [] };
  const added = new Map(renderer.tokenizer.added.map((token) => [token.text, token.id]));
  const encode = (text: string) => [...renderer.tokenizer.encodePlain(text)];
  // What the policy would have sampled, up to the place where `answer` begins, and from there on.
  const start = prompt.findIndex((id, i) => whole[i] !== id);
  const behind = [...whole.slice(start < 0 ? prompt.length : start)];
  const stop = behind.findIndex((id) => renderer.stopIds.includes(id));
  const rest = stop < 0 ? behind : behind.slice(0, stop + 1);
  const at = rest.findIndex((_, i) => encode(answer).every((id, j) => rest[i + j] === id));
  return { renderer, context, added, encode, before: rest.slice(0, at), after: rest.slice(at + encode(answer).length) };
}

/** What stands inside an answer and is no text there. */
const STRAYS: [
  string,
  (family: Family, added: ReadonlyMap<string, number>, encode: (text: string) => number[]) => number[],
][] = [
  [
    "a special token of another family",
    (family, added) => [added.get(family.structure.includes("<|start|>") ? "<|eot_id|>" : "<|start|>")!],
  ],
  ["its own end of turn", ({ stops }, added) => [stops.map((text) => added.get(text)).find((id) => id !== undefined)!]],
  ["an id without a token", () => [4000]],
  ["half a character", (_family, _added, encode) => encode("é").slice(0, 1)],
  ["one of its own marks", ({ structure }, added) => [added.get(structure[0]!)!]],
];

describe("in the middle of an answer", () => {
  describe.each(STRAYS)("%s", (_name, stray) => {
    it.each(Object.keys(FAMILIES))("is flagged where the family is %s", async (family) => {
      const { renderer, context, added, encode, before, after } = await answerOf(family, "the answer");
      const parse = (ids: number[]) => renderer.parse(Int32Array.from([...before, ...ids, ...after]), context);
      expect(parse(encode("the answer"))).toMatchObject({ malformed: false, message: { content: "the answer" } });
      const inside = stray(FAMILIES[family]!, added, encode);
      const { malformed, message } = parse([...encode("the "), ...inside, ...encode("answer")]);
      expect(malformed).toBe(true);
      expect(message.content).toContain(renderer.decode([...encode("the "), ...inside]));
    });
  });
});
