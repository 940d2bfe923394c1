/** What a harness is told of token counts, whatever its engine counted: the ids that are on record. */
import { describe, expect, it } from "vitest";
import { chatWishes, passthroughWriter } from "../src/record/relay.js";
import { readEngineChunk } from "../src/sample/engine-chunk.js";
import { scriptedEngine, serverBefore, startTestSidecar, turnsOf, user } from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { reasoning: "hm", content: "one two three four" } }];
const MESSAGES = [user("hello")];

/** A sidecar whose engine counts as it is told to. */
async function start(usage: string) {
  const engine = await scriptedEngine(RULES);
  let armed = false;
  const front = await serverBefore(engine, (request, response) => {
    if (!armed || request.url !== "/v1/chat/completions") return false;
    const body: Buffer[] = [];
    request.on("data", (bytes: Buffer) => body.push(bytes));
    request.on("end", async () => {
      const { method, headers } = { method: "POST", headers: { "content-type": "application/json" } };
      const answer = await fetch(`${engine.url}${request.url}`, { method, headers, body: Buffer.concat(body) });
      const text = (await answer.text()).replace(/"usage":\{(?:[^{}]|\{[^{}]*\})*\}/g, `"usage":${usage}`);
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" }).end(text);
    });
    return true;
  });
  const started = await startTestSidecar(front);
  armed = true;
  return started;
}

interface Counts {
  prompt: number;
  completion: number;
  cached: number;
}

const DIALECTS: Record<string, { path: string; body: object; counts(usage: Record<string, unknown>): Counts }> = {
  chat: {
    path: "/chat/completions",
    body: { messages: MESSAGES, stream_options: { include_usage: true } },
    counts: ({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }) => {
      expect(total_tokens).toBe(Number(prompt_tokens) + Number(completion_tokens));
      const cached = (prompt_tokens_details as { cached_tokens?: number } | undefined)?.cached_tokens ?? 0;
      return { prompt: Number(prompt_tokens), completion: Number(completion_tokens), cached };
    },
  },
  responses: {
    path: "/responses",
    body: { input: MESSAGES },
    counts: ({ input_tokens, output_tokens, total_tokens, input_tokens_details, output_tokens_details }) => {
      expect(total_tokens).toBe(Number(input_tokens) + Number(output_tokens));
      const { reasoning_tokens } = output_tokens_details as { reasoning_tokens: number };
      expect(reasoning_tokens).toBeLessThanOrEqual(Number(output_tokens));
      const cached = (input_tokens_details as { cached_tokens: number }).cached_tokens;
      return { prompt: Number(input_tokens), completion: Number(output_tokens), cached };
    },
  },
  messages: {
    path: "/messages",
    body: { messages: MESSAGES, max_tokens: 100 },
    counts: ({ input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens }) => {
      expect(Number(input_tokens)).toBeGreaterThanOrEqual(0);
      const cached = Number(cache_read_input_tokens);
      const prompt = Number(input_tokens) + cached + Number(cache_creation_input_tokens);
      return { prompt, completion: Number(output_tokens), cached };
    },
  },
};

/** The last usage that an answer tells, body or stream. */
function lastUsage(text: string): Record<string, unknown> {
  const found: Record<string, unknown>[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { usage } = value as { usage?: Record<string, unknown> | null };
    if (usage !== undefined && usage !== null) found.push(usage);
    for (const inner of Object.values(value)) look(inner);
  };
  const pieces = text.startsWith("{") ? [text] : text.split("\n").map((line) => line.replace(/^data: /, ""));
  for (const piece of pieces) if (piece.startsWith("{")) look(JSON.parse(piece));
  return found.at(-1) ?? {};
}

const counted = (prompt: number, completion: number, more = ""): string =>
  `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}${more}}`;

const WRONG: [words: string, usage: string, defect: string][] = [
  ["more of both", counted(900, 800), "completion_count_disagrees"],
  ["less of both", counted(1, 1), "prompt_count_disagrees"],
  ["nothing", "null", "usage_lost"],
  ["no numbers", '{"prompt_tokens":"7","completion_tokens":-3,"total_tokens":null}', "usage_lost"],
  [
    "more cached and reasoning tokens than there are tokens",
    counted(
      2,
      900,
      ',"prompt_tokens_details":{"cached_tokens":5000},"completion_tokens_details":{"reasoning_tokens":700}',
    ),
    "completion_count_disagrees",
  ],
];
const FORMS = Object.entries(DIALECTS).flatMap(([name, dialect]) =>
  [false, true].map((stream) => ({ ...dialect, form: `${name}, stream: ${stream}`, stream })),
);

describe("an engine that miscounts", () => {
  it.each(WRONG)(
    "(%s): the harness is told the ids, in every dialect, streamed and not (O.4)",
    async (_words, usage, defect) => {
      const started = await start(usage);
      const told: [form: string, Counts][] = [];
      for (const { form, path, body, counts, stream } of FORMS) {
        const response = await fetch(`${started.url}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
          body: JSON.stringify({ model: "policy", ...body, stream }),
        });
        told.push([form, counts(lastUsage(await response.text()))]);
      }
      const turns = turnsOf(await started.sealed());
      expect(turns.map(({ record }) => record.defects.includes(defect))).toEqual(FORMS.map(() => true));
      expect(told).toEqual(
        turns.map(({ promptIds, sampledIds }, index) => {
          const cached = usage.includes("cached") ? promptIds.length : 0;
          return [FORMS[index]!.form, { prompt: promptIds.length, completion: sampledIds.length, cached }];
        }),
      );
    },
  );
});

it("the prompt's count is in the first event of a Messages stream too: older clients read it nowhere else (O.4)", async () => {
  const started = await startTestSidecar(await scriptedEngine(RULES));
  const response = await fetch(`${started.url}/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
    body: JSON.stringify({ model: "policy", messages: MESSAGES, max_tokens: 100, stream: true }),
  });
  const [first] = (await response.text()).split("\n\n");
  const [turn] = turnsOf(await started.sealed());
  expect(lastUsage(first!)).toMatchObject({ input_tokens: turn!.promptIds.length, output_tokens: 0 });
});

describe("the engine's own chunks", () => {
  const wishes = chatWishes({ wantsLogprobs: false, includeUsage: true } as Parameters<typeof chatWishes>[0]);
  const piece = (more: object, choice: object | null): string =>
    JSON.stringify({
      id: "c",
      choices: choice === null ? [] : [{ index: 0, delta: {}, finish_reason: null, ...choice }],
      ...more,
    });
  const through = (raws: string[]): unknown[] => {
    const writer = passthroughWriter(wishes, "a-1");
    const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: null, reasoningTokens: null };
    const frames = raws.flatMap((raw) => writer.chunk(raw, readEngineChunk(JSON.parse(raw)), []));
    frames.push(...writer.end([{ type: "finish", reason: "stop", usage, stopSequence: null }]));
    return frames.flatMap(({ text }) =>
      text.includes("[DONE]") ? [] : [JSON.parse(text.slice("data: ".length)).usage],
    );
  };
  const first = { prompt_token_ids: [1, 2, 3] };
  const right = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

  it("get usage at each token right as far as they are, and keep what else it holds", () => {
    const wrong = (completion: number) => ({
      usage: { prompt_tokens: 9, completion_tokens: completion, total_tokens: 7, x: 1 },
    });
    const told = through([
      piece({ ...first, ...wrong(0) }, { token_ids: [] }),
      piece(wrong(5), { token_ids: [7] }),
      piece(wrong(6), { token_ids: [8], finish_reason: "stop" }),
      piece(wrong(6), null),
    ]);
    expect(told).toEqual(
      [0, 1, 2, 2].map((n) => ({ prompt_tokens: 3, completion_tokens: n, total_tokens: 3 + n, x: 1 })),
    );
  });

  it("are followed by one for the usage where the engine sends none, as the harness asked", () => {
    const told = through([piece(first, { token_ids: [7] }), piece({}, { token_ids: [8], finish_reason: "stop" })]);
    expect(told).toEqual([undefined, undefined, right]);
  });

  it("that are right keep their bytes", () => {
    const writer = passthroughWriter(wishes, "a-1");
    const raw = '{"id":"c", "choices":[], "usage":{"total_tokens":5 ,"prompt_tokens":3,"completion_tokens":2}}';
    writer.chunk(raw, readEngineChunk(JSON.parse(raw)), []);
    const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: null, reasoningTokens: null };
    const [frame] = writer.end([{ type: "finish", reason: "stop", usage, stopSequence: null }]);
    expect(frame!.text).toBe(`data: ${raw}\n\n`);
  });
});
