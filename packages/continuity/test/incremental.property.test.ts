/**
 * Incremental matching against the contract's own list: a history comes back in other spellings, which keep its last checkpoint,
 * or with one real difference, which does not. More by hand: TITO_RUNS. A failure prints its seed.
 */
import type { Message } from "@tito/format";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Chat, result, system, user } from "./chat.js";

const RUNS = Number(process.env.TITO_RUNS ?? 150);
const TIMEOUT_MS = RUNS * 20 + 60_000;

const text = fc.constantFrom("ok", " Done.\n", "one two", "");
const args = fc.record({
  a: fc.constantFrom(1, 10, 0.5),
  b: fc.constantFrom("x", "é\n"),
  c: fc.array(fc.boolean(), { maxLength: 2 }),
});
const exchange = fc.record({
  tool: fc.boolean(),
  text,
  reasoning: fc.constantFrom(undefined, "so", " so\n"),
  args,
  output: text,
  next: text,
});
type Exchange = typeof exchange extends fc.Arbitrary<infer T> ? T : never;

/** Another spelling of a message that must keep the checkpoint. */
type Respell = (message: Message) => Message;
const RESPELLINGS: Respell[] = [
  (message) => message,
  (message) =>
    typeof message.content === "string" && message.content !== ""
      ? { ...message, content: [{ type: "text", text: message.content }] }
      : message,
  (message) => (message.content === "" ? { ...message, content: null } : message),
  (message) => (message.role === "system" ? { ...message, role: "developer" } : message),
  ({ reasoning: _, ...message }) => message,
  (message) =>
    message.reasoning === undefined ? message : { ...message, reasoning: `\n ${message.reasoning.trim()} ` },
  (message) => withArguments(message, (value) => JSON.stringify(value, null, 2)),
  (message) => withArguments(message, (value) => JSON.stringify(Object.fromEntries(Object.entries(value).reverse()))),
  (message) =>
    withArguments(message, (value) =>
      JSON.stringify(value).replace('"a":10', '"a":1.0e1').replace('"a":1,', '"a":10E-1,'),
    ),
  (message) => withArguments(message, (value) => JSON.stringify(value).replaceAll("é", "\\u00e9")),
];

/** A difference that makes it another message, null where the message has no such thing. `last`: whether it may stand in the last reply and be found out. */
const CHANGES: Record<string, (message: Message) => Message | null> = {
  content: (message) =>
    message.role === "assistant" && message.tool_calls === undefined
      ? null
      : { ...message, content: `${message.content}!` },
  white_space: (message) =>
    message.role === "assistant" && message.tool_calls === undefined
      ? null
      : { ...message, content: `${message.content} ` },
  reasoning: (message) => (message.role === "assistant" ? { ...message, reasoning: "other" } : null),
  arguments: (message) => changed(message, (value) => JSON.stringify({ ...value, a: 7 })),
  argument_added: (message) => changed(message, (value) => JSON.stringify({ ...value, d: null })),
  large_number: (message) =>
    changed(message, (value) => JSON.stringify(value).replace(/"a":[\d.]+/, '"a":10000000000000001')),
  name: (message) =>
    message.tool_calls === undefined
      ? null
      : { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, name: "other" })) },
  role: (message) => (message.role === "user" ? { ...message, role: "system" } : null),
};

function withArguments(message: Message, spell: (value: Record<string, unknown>) => string): Message {
  if (message.tool_calls === undefined) return message;
  const tool_calls = message.tool_calls.map((call) => ({
    ...call,
    arguments: spell(JSON.parse(call.arguments) as Record<string, unknown>),
  }));
  return { ...message, tool_calls };
}

function changed(message: Message, spell: (value: Record<string, unknown>) => string): Message | null {
  return message.tool_calls === undefined ? null : withArguments(message, spell);
}

/** Plays the conversation; the messages up to and with its last reply. */
function converse(exchanges: readonly Exchange[]): { chat: Chat; messages: Message[] } {
  const chat = new Chat();
  const messages: Message[] = [system("be brief"), user("go")];
  for (const [i, each] of exchanges.entries()) {
    const reasoning = each.reasoning === undefined ? {} : { reasoning: each.reasoning };
    const call = { id: `call-${i}`, name: "bash", arguments: JSON.stringify(each.args) };
    // A text reply is found by its text, so that it has to be its own.
    const reply: Message = each.tool
      ? { role: "assistant", content: each.text, ...reasoning, tool_calls: [call] }
      : { role: "assistant", content: `${each.text} reply ${i}`, ...reasoning };
    chat.ask([...messages], reply);
    messages.push(reply);
    if (i < exchanges.length - 1) messages.push(each.tool ? result(call.id, each.output) : user(each.next));
  }
  return { chat, messages };
}

const conversation = fc.array(exchange, { minLength: 1, maxLength: 4 });
const spellings = fc.array(fc.nat(RESPELLINGS.length - 1), { minLength: 12, maxLength: 12 });

it(
  `${RUNS} histories in other spellings keep their last checkpoint`,
  () => {
    const property = fc.property(conversation, spellings, (exchanges, which) => {
      const { chat, messages } = converse(exchanges);
      const spelled = messages.map((message, i) => RESPELLINGS[which[i]!]!(message));
      const found = chat.find([...spelled, user("new")]);
      expect(found).toMatchObject({ kind: "checkpoint", call_id: `t${exchanges.length}`, from: messages.length });
      expect(chat.find(spelled)).toMatchObject({ kind: "fallback", reason: "nothing_new" });
    });
    fc.assert(property, { numRuns: RUNS });
  },
  TIMEOUT_MS,
);

it(
  `${RUNS} histories with one real difference fall back`,
  () => {
    const property = fc.property(
      conversation,
      spellings,
      fc.constantFrom(...Object.keys(CHANGES)),
      fc.nat(11),
      (exchanges, which, change, at) => {
        const { chat, messages } = converse(exchanges);
        const index = at % messages.length;
        const other = CHANGES[change]!(messages[index]!);
        fc.pre(other !== null);
        const spelled = messages.map((message, i) => (i === index ? other! : RESPELLINGS[which[i]!]!(message)));
        expect(chat.find([...spelled, user("new")])).toMatchObject({ kind: "fallback" });
      },
    );
    fc.assert(property, { numRuns: RUNS });
  },
  TIMEOUT_MS,
);

it(
  `${RUNS} histories that lack a message, or have two in another order, fall back`,
  () => {
    const property = fc.property(conversation, fc.nat(11), fc.boolean(), (exchanges, at, swap) => {
      const { chat, messages } = converse(exchanges);
      const index = at % (messages.length - 1);
      const [first, second] = [messages[index]!, messages[index + 1]!];
      const edited = [...messages];
      if (swap) edited.splice(index, 2, second, first);
      else edited.splice(index, 1);
      const found = chat.find([...edited, user("new")]);
      // Taking the last text reply away leaves the one before it, whose history is whole.
      if (found.kind === "checkpoint") expect(found.from).toBeLessThanOrEqual(index);
      else expect(found.reason).not.toBe("nothing_new");
    });
    fc.assert(property, { numRuns: RUNS });
  },
  TIMEOUT_MS,
);
