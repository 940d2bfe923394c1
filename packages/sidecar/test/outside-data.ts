/** Data as nobody promised it, for tests that nothing from outside ends the process: JSON whose members are replaced, cut, doubled or broken. */
import fc from "fast-check";

/** Spliced in as text, so that numbers beyond a double, lone surrogates and nesting without end come through as they are. */
const RAW: readonly string[] = [
  "null",
  "true",
  '""',
  "0",
  "-1",
  "0.5",
  "1e308",
  "1e400",
  "-0",
  "9007199254740993",
  "1790000000000",
  "1790000000000000000",
  "2147483648",
  '"1790000000"',
  '"NaN"',
  '"Infinity"',
  '"\\ud800"',
  '"\\u0000"',
  '"__proto__"',
  '"constructor"',
  "[]",
  "{}",
  "[null]",
  "[[]]",
  '{"__proto__":{"x":1}}',
  '{"toString":1,"valueOf":2,"length":-1}',
  '{"type":"function"}',
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
  JSON.stringify("[".repeat(50_000)),
  JSON.stringify('{"a":'.repeat(20_000)),
  JSON.stringify("x".repeat(100_000)),
  `[${"1,".repeat(200_000)}1]`,
  `[${'{"logprob":-1},'.repeat(150_000)}{"logprob":-1}]`,
  `{${Array.from({ length: 2000 }, (_, index) => `"k${index}":${index}`).join(",")}}`,
  '"2026-13-45T99:99:99Z"',
  '"%E0%A4%A"',
  '"chatcmpl-\\r\\nx: y"',
];

type Path = (string | number)[];

/** Where the values of a JSON value stand, the value itself included. */
function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...at, key]))];
}

/** `value` as JSON text with raw text at some paths; an undefined text leaves the member out. */
function textWith(value: unknown, changes: ReadonlyMap<string, string | undefined>, at: Path = []): string {
  const key = JSON.stringify(at.map(String));
  if (changes.has(key)) return changes.get(key) ?? "null";
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item, index) => textWith(item, changes, [...at, index])).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const place = [...at, name];
    const id = JSON.stringify(place.map(String));
    if (changes.has(id) && changes.get(id) === undefined) return [];
    return [`${JSON.stringify(name)}:${textWith(member, changes, place)}`];
  });
  return `{${members.join(",")}}`;
}

/** Bytes of a JSON text that was `template` once: up to three members changed, and now and then broken as a whole. */
export function strangeJson(template: unknown): fc.Arbitrary<Buffer> {
  const paths = pathsOf(template).map((path) => JSON.stringify(path.map(String)));
  const change = fc.tuple(fc.constantFrom(...paths), fc.option(fc.constantFrom(...RAW), { nil: undefined, freq: 8 }));
  const plain = fc
    .array(change, { minLength: 1, maxLength: 3 })
    .map((changes) => Buffer.from(textWith(template, new Map(changes)), "utf8"));
  const broken = fc.tuple(plain, fc.nat(), fc.nat(255)).map(([bytes, where, byte]) => {
    const copy = Buffer.from(bytes);
    const at = where % copy.length;
    copy[at] = byte;
    return byte % 3 === 0 ? copy.subarray(0, at) : copy;
  });
  const junk = fc.constantFrom(
    ...["", " ", "[", '"', "\ufeff{}", "null", "[]", "\u0000", "<html>", '{"a":1}{"b":2}', RAW.at(27)!].map((text) =>
      Buffer.from(text, "utf8"),
    ),
    Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  );
  return fc.oneof({ weight: 12, arbitrary: plain }, { weight: 2, arbitrary: broken }, { weight: 1, arbitrary: junk });
}

/** Longer ones cost too much to stand everywhere. */
const SHORT_CHARS = 5000;

/** `template` with each of its values replaced by each strange one, or left out; long ones only where something of their kind stood. */
export function* everyChange(template: unknown): Generator<{ what: string; bytes: Buffer }> {
  for (const path of pathsOf(template)) {
    const id = JSON.stringify(path.map(String));
    const value = path.reduce<unknown>((holder, key) => (holder as Record<string, unknown>)[key], template);
    for (const raw of [undefined, ...RAW]) {
      if (raw !== undefined && raw.length > SHORT_CHARS && !isAlike(raw, value)) continue;
      const bytes = Buffer.from(textWith(template, new Map([[id, raw]])), "utf8");
      yield { what: `${path.join(".") || "all"} = ${raw === undefined ? "nothing" : raw.slice(0, 40)}`, bytes };
    }
  }
}

function isAlike(raw: string, value: unknown): boolean {
  if (typeof value === "string") return raw[0] === '"';
  return Array.isArray(value) ? raw[0] === "[" : typeof value === "object" && raw[0] === "{";
}

const PARAMETERS = { type: "object", properties: { a: { type: "number" } } };
const ARGUMENTS = '{"a": 1, "b": [1.0, {"c": null}]}';

/** By route, a request with everything in it that is read. */
export const BODIES = {
  "/v1/chat/completions": {
    model: "policy",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: [{ type: "text", text: "Be brief." }] },
      { role: "user", content: "call" },
      {
        role: "assistant",
        content: null,
        reasoning_content: "So.",
        tool_calls: [
          { id: "c1", type: "function", function: { name: "f", arguments: ARGUMENTS } },
          { id: null, type: "function", function: { name: "f", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "1" },
      { role: "tool", tool_call_id: null, content: [{ type: "text", text: "2" }] },
      { role: "user", content: "more" },
    ],
    tools: [{ type: "function", function: { name: "f", description: "d", parameters: PARAMETERS, strict: true } }],
    tool_choice: "auto",
    response_format: { type: "text" },
    chat_template_kwargs: { enable_thinking: true },
    reasoning_effort: "low",
    logit_bias: { "5": 1 },
    stop_token_ids: [1],
    temperature: 1,
    top_p: 0.5,
    seed: 7,
    n: 1,
    max_tokens: 16,
    stop: ["\n\n"],
    metadata: { user: "x" },
  },
  "/v1/responses": {
    model: "policy",
    stream: true,
    instructions: "Be brief.",
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "call" }] },
      {
        type: "reasoning",
        id: "rs_x",
        summary: [{ type: "summary_text", text: "So." }],
        encrypted_content: "tito1:e30",
      },
      { type: "function_call", call_id: "c1", name: "f", arguments: ARGUMENTS },
      { type: "custom_tool_call", call_id: "c2", name: "g", input: "x" },
      { type: "function_call_output", call_id: "c1", output: "1" },
      { type: "custom_tool_call_output", call_id: null, output: "2" },
      { type: "message", role: "user", content: "more" },
    ],
    tools: [
      { type: "function", name: "f", description: "d", parameters: PARAMETERS },
      { type: "custom", name: "g", description: "d", format: { type: "text" } },
      { type: "namespace", name: "n", tools: [{ type: "function", name: "h", parameters: PARAMETERS }] },
    ],
    tool_choice: { type: "function", name: "f" },
    text: { format: { type: "json_schema", name: "s", schema: PARAMETERS } },
    reasoning: { effort: "low" },
    max_output_tokens: 16,
    include: ["reasoning.encrypted_content"],
    client_metadata: { a: "b" },
  },
  "/v1/messages": {
    model: "policy",
    stream: true,
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: "call" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "So.", signature: "x" },
          { type: "text", text: "Well." },
          { type: "tool_use", id: "c1", name: "f", input: { a: 1, malformed_arguments: "{" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "1" }], is_error: false },
          { type: "text", text: "more" },
        ],
      },
    ],
    tools: [
      { name: "f", description: "d", input_schema: PARAMETERS },
      { name: "late", input_schema: PARAMETERS, defer_loading: true },
    ],
    tool_choice: { type: "tool", name: "f" },
    output_config: { format: { type: "json_schema", schema: PARAMETERS } },
    stop_sequences: ["\n\n"],
    temperature: 1,
    max_tokens: 16,
  },
};

const CHUNK = {
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1_790_000_000,
  model: "policy",
  prompt_token_ids: [1, 2, 3],
  choices: [
    {
      index: 0,
      delta: {
        role: "assistant",
        content: "Hi",
        reasoning_content: "so",
        tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "f", arguments: ARGUMENTS } }],
      },
      logprobs: { content: [{ token: "token_id:5", logprob: -0.5, bytes: null, top_logprobs: [] }] },
      token_ids: [5],
      finish_reason: "stop",
      stop_reason: null,
      weight_versions: [{ version: "1", start: 0, end: 1 }],
    },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4, prompt_tokens_details: { cached_tokens: 0 } },
  meta_info: { weight_version: "1" },
};
const { delta, ...CHOICE } = CHUNK.choices[0]!;
const WHOLE = { ...CHUNK, object: "chat.completion", choices: [{ ...CHOICE, message: delta }] };
const COMPLETION = {
  ...CHUNK,
  choices: [
    {
      index: 0,
      text: "Hi",
      token_ids: [5],
      prompt_token_ids: [1, 2, 3],
      finish_reason: "stop",
      logprobs: {
        tokens: ["token_id:5"],
        token_logprobs: [-0.5],
        top_logprobs: [{ "token_id:5": -0.5 }],
        text_offset: [0],
      },
    },
  ],
};
const SGLANG = {
  text: "Hi",
  output_ids: [5],
  meta_info: {
    id: "1",
    finish_reason: { type: "stop", matched: 5, status_code: 200, message: "" },
    prompt_tokens: 3,
    completion_tokens: 1,
    cached_tokens: 0,
    weight_version: "1",
    weight_versions: [{ version: "1", start: 0, end: 1 }],
    output_token_logprobs: [[-0.5, 5, null]],
  },
  sglext: { input_ids: [1, 2, 3], output_ids: [[5]] },
};
const FAILURE = {
  error: { message: "Input is too long", type: "exceed_context_size_error", code: 400, param: null },
  detail: [{ msg: "x" }],
  message: "no",
};
const LLAMACPP = {
  index: 0,
  content: "Hi",
  tokens: [5],
  id_slot: 0,
  stop: true,
  stop_type: "eos",
  tokens_predicted: 1,
  tokens_evaluated: 3,
  prompt: [1, 2, 3],
  completion_probabilities: [{ id: 5, token: "Hi", logprob: -0.5, top_logprobs: [{ id: 5, logprob: -0.5 }] }],
  truncated: false,
  timings: {},
};

/** What engines send, in their shapes: chunks and bodies of chats, completions, SGLang's and llama.cpp's own, and a refusal. */
export const REPLIES: readonly object[] = [CHUNK, WHOLE, COMPLETION, SGLANG, LLAMACPP, FAILURE];
