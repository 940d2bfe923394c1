import type { Message, ToolDefinition } from "@tito/format";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FAMILIES, type Family } from "../../src/families/families.js";
import type { PromptRenderer } from "../../src/prompt-renderer.js";
import { openByteRenderer } from "../byte-bundles.js";

const TOOLS: ToolDefinition[] = [
  {
    name: "bash",
    description: "run",
    parameters: JSON.stringify({
      type: "object",
      properties: {
        command: { type: "string" },
        count: { type: "integer" },
        flag: { type: "boolean" },
        list: { type: "array" },
        map: { type: "object" },
      },
    }),
  },
];

/** Arguments that make the templates print reasoning. */
const ARGUMENTS: Record<string, Record<string, boolean>> = {
  "deepseek-v3.2": { thinking: true },
  "deepseek-v4": { thinking: true },
};

const WORDS = [
  "the",
  "file",
  "é中😀",
  "a < b",
  "x\n\ny",
  '{"k": 1}',
  "10%",
  "'q'",
  "<b>",
  "tab\tend",
  "}",
  "- item",
  "\ufeffbom\ufeff",
  "\u200b",
];
const text = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 8 }).map((words) => words.join(" "));
const value = fc.record(
  {
    command: text,
    count: fc.integer({ min: -5, max: 1000 }),
    flag: fc.boolean(),
    list: fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
    map: fc.dictionary(fc.constantFrom("a", "10", "2"), text, { maxKeys: 3 }),
  },
  { requiredKeys: [] },
);

function messages({ carries }: Family, args: Record<string, unknown>): fc.Arbitrary<Message> {
  const calls = fc.array(value, { maxLength: Math.min(3, carries.calls_max) });
  const form = carries.reasoning(args);
  return fc.record({ content: text, reasoning: fc.option(text), calls, speak: fc.boolean() }).map((parts) => {
    const message: Message = { role: "assistant", content: parts.content };
    const reasoning = form === "always" ? (parts.reasoning ?? "because") : parts.reasoning;
    if (reasoning !== null && form !== "never") message.reasoning = reasoning;
    if (parts.calls.length > 0) {
      if (!parts.speak || !carries.content_with_calls) message.content = "";
      message.tool_calls = parts.calls.map((args, i) => ({
        id: `c${i}`,
        name: "bash",
        arguments: JSON.stringify(args),
      }));
    }
    return message;
  });
}

/** What must survive: text as it is, arguments as values, no difference between no reasoning and empty reasoning. */
const essence = (message: Message) => ({
  content: message.content ?? "",
  reasoning: message.reasoning ?? "",
  calls: (message.tool_calls ?? []).map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
});

/** The same without the white space at the ends of texts, which templates set as they like. */
const trimmed = (message: Message) => {
  const { content, reasoning, calls } = essence(message);
  return { content: String(content).trim(), reasoning: reasoning.trim(), calls };
};

/** The ids that the policy would have sampled: what the render of the whole turn adds to the prompt, up to and with the stop token. */
function sampledIds(
  renderer: PromptRenderer,
  history: Message[],
  reply: Message,
): { prompt: Int32Array; sampled: Int32Array } {
  const prompt = renderer.render(history, TOOLS).ids;
  const whole = renderer.render([...history, reply], TOOLS, { generationPrompt: false }).ids;
  expect(Array.from(whole.slice(0, prompt.length))).toEqual(Array.from(prompt));
  const rest = whole.slice(prompt.length);
  const stop = rest.findIndex((id) => renderer.stopIds.includes(id));
  return { prompt, sampled: stop < 0 ? rest : rest.slice(0, stop + 1) };
}

const families = Object.keys(FAMILIES);

describe.each(families)("%s", (family) => {
  const history: Message[] = [{ role: "user", content: "List the files." }];

  it("a well-formed turn parses back to the message that was rendered, and its deltas add up to it", async () => {
    const renderer = await openByteRenderer(family, ARGUMENTS[family]);
    fc.assert(
      fc.property(
        messages(FAMILIES[family]!, ARGUMENTS[family] ?? {}),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (reply, steps) => {
          const { prompt, sampled } = sampledIds(renderer, history, reply);
          const context = { promptTail: prompt, promptTokens: prompt.length, tools: TOOLS };
          const parsed = renderer.parse(sampled, context);
          expect(parsed.malformed).toBe(false);
          // Harmony prints reasoning only until the answer is there.
          const spent = family === "gpt-oss" && reply.tool_calls === undefined;
          expect(essence(parsed.message)).toEqual({ ...essence(reply), ...(spent ? { reasoning: "" } : {}) });
          const live = renderer.liveParser(context);
          let [reasoning, content] = ["", ""];
          for (let at = 0, i = 0; at < sampled.length; at += steps[i++ % steps.length]!) {
            const delta = live.push(sampled.slice(at, at + steps[i % steps.length]!));
            reasoning += delta.reasoning;
            content += delta.content;
          }
          const end = live.end();
          expect(content + end.rest.content).toBe(parsed.message.content ?? "");
          expect(reasoning + end.rest.reasoning).toBe(parsed.message.reasoning ?? "");
        },
      ),
      { numRuns: 60 },
    );
  });

  it("a damaged turn that is not flagged reads the same once its message is rendered; a special token in it is always flagged", async () => {
    const renderer = await openByteRenderer(family, ARGUMENTS[family]);
    const { structure } = renderer.family;
    const added = renderer.tokenizer.added;
    const piece = fc.constantFrom(
      ...added.map((token) => token.id),
      ...[..."\n a<}{é"].flatMap((c) => [...renderer.tokenizer.encode(c)]),
    );
    const edit = fc.record({ at: fc.nat(), remove: fc.nat(2), insert: fc.array(piece, { maxLength: 3 }) });
    fc.assert(
      fc.property(
        messages(renderer.family, ARGUMENTS[family] ?? {}),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        (reply, edits) => {
          const { prompt, sampled: whole } = sampledIds(renderer, history, reply);
          const ids = [...whole];
          for (const { at, remove, insert } of edits) ids.splice(at % ids.length, remove, ...insert);
          const context = { promptTail: prompt, promptTokens: prompt.length, tools: TOOLS };
          const { message, malformed } = renderer.parse(Int32Array.from(ids), context);
          const ended = renderer.stopIds.includes(ids.at(-1) ?? -1);
          const inside = new Set(ended ? ids.slice(0, -1) : ids);
          const foreign = added.some(({ id, special, text }) => special && !structure.includes(text) && inside.has(id));
          if (foreign) expect(malformed).toBe(true);
          if (malformed) return;
          const again = sampledIds(renderer, history, message);
          const read = renderer.parse(again.sampled, { ...context, promptTail: again.prompt });
          expect({ ...trimmed(read.message), malformed: read.malformed }).toEqual({ ...trimmed(message), malformed });
        },
      ),
      { numRuns: Number(process.env.TITO_RUNS ?? 80) },
    );
  });

  it("any ids at all parse to some message, live and whole alike", async () => {
    const renderer = await openByteRenderer(family);
    const tokens = renderer.tokenizer.added.map((token) => token.id);
    const id = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...tokens) },
      fc.nat(260),
      fc.integer({ min: -2, max: 5000 }),
    );
    fc.assert(
      fc.property(fc.array(id, { maxLength: 40 }), fc.boolean(), (ids, opened) => {
        const sampled = Int32Array.from(ids);
        const tail = Int32Array.from(
          opened && tokens.length > 0 ? renderer.tokenizer.encode(renderer.family.reasoning_prompt ?? "") : [],
        );
        const context = { promptTail: tail, promptTokens: 7, tools: TOOLS };
        const parsed = renderer.parse(sampled, context);
        expect(renderer.parse(sampled, context)).toEqual(parsed);
        const live = renderer.liveParser(context);
        const given = ids.map((one) => live.push([one]));
        const end = live.end();
        expect(end.malformed).toBe(parsed.malformed);
        expect(given.map((delta) => delta.content).join("") + end.rest.content).toBe(parsed.message.content ?? "");
        expect(given.map((delta) => delta.reasoning).join("") + end.rest.reasoning).toBe(
          parsed.message.reasoning ?? "",
        );
      }),
      { numRuns: 150 },
    );
  });
});
