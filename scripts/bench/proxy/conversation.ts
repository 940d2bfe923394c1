/** Conversations as an agent has them: every prompt is the last one, its answer and a little more. All bytes are made before anything is measured. */

export interface Shape {
  name: string;
  turns: number;
  /** Prompt ids of the first turn. */
  promptTokens: number;
  sampledTokens: number;
  /** Prompt ids that come between an answer and the next prompt's end. */
  gapTokens: number;
  /** Characters of the first message. */
  systemChars: number;
}

/** One call: what the harness sends, and what the engine answers, whole and in chunks. */
export interface Call {
  key: string;
  request: Buffer;
  body: string;
  chunks: string[];
}

/** Prompts of 8,000 ids and answers of 500 in the middle of it: bodies of 33 kB, answers of 99 kB. */
export const LARGE: Shape = {
  name: "large",
  turns: 16,
  promptTokens: 4_130,
  sampledTokens: 500,
  gapTokens: 16,
  systemChars: 12_000,
};
export const SMALL: Shape = {
  name: "small",
  turns: 16,
  promptTokens: 64,
  sampledTokens: 8,
  gapTokens: 8,
  systemChars: 200,
};
/** Fifty turns, as the rival's own benchmark has them, prompts of 8,000 ids in the middle. */
export const LONG: Shape = {
  name: "long",
  turns: 50,
  promptTokens: 2_000,
  sampledTokens: 200,
  gapTokens: 40,
  systemChars: 16_000,
};

/** What the sidecar's start-up probe gets. */
export const PROBE: Shape = {
  name: "probe",
  turns: 1,
  promptTokens: 3,
  sampledTokens: 1,
  gapTokens: 0,
  systemChars: 1,
};

export function conversation(shape: Shape, stream = false): Call[] {
  const { turns, promptTokens, sampledTokens, gapTokens } = shape;
  const line = ids(promptTokens + turns * (sampledTokens + gapTokens));
  const messages: { role: string; content: string }[] = [{ role: "system", content: words(shape.systemChars) }];
  return Array.from({ length: turns }, (_, turn) => {
    const key = shape.name === "probe" ? "probe" : `${shape.name}-${turn}`;
    const start = promptTokens + turn * (sampledTokens + gapTokens);
    messages.push({ role: "user", content: `go on [bench:${key}]` });
    const request = Buffer.from(JSON.stringify({ model: "policy", messages, stream }));
    const content = words(sampledTokens * 4);
    messages.push({ role: "assistant", content });
    return { key, request, ...reply(line.slice(0, start), line.slice(start, start + sampledTokens), content) };
  });
}

/** The answer in vLLM's shapes. Each chunk carries one token, and room for the moment at which it is sent. */
function reply(prompt: number[], sampled: number[], content: string): { body: string; chunks: string[] } {
  const head = { id: "chatcmpl-bench", created: 1_790_000_000, model: "policy" };
  const entries = sampled.map((id) => ({
    token: `t${id}`,
    logprob: -(id % 997) / 512,
    bytes: [116, 49],
    top_logprobs: [],
  }));
  const usage = {
    prompt_tokens: prompt.length,
    completion_tokens: sampled.length,
    total_tokens: prompt.length + sampled.length,
  };
  const body = {
    ...head,
    object: "chat.completion",
    prompt_token_ids: prompt,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content },
        finish_reason: "stop",
        token_ids: sampled,
        logprobs: { content: entries },
      },
    ],
    usage,
  };
  const part = Math.ceil(content.length / sampled.length);
  const chunks = sampled.map((id, index) => {
    const last = index === sampled.length - 1;
    const text = content.slice(index * part, (index + 1) * part);
    return JSON.stringify({
      ...head,
      object: "chat.completion.chunk",
      ...(index === 0 ? { prompt_token_ids: prompt } : {}),
      choices: [
        {
          index: 0,
          delta: { ...(index === 0 ? { role: "assistant" } : {}), content: text, sent: "000000000000000000" },
          finish_reason: last ? "stop" : null,
          token_ids: [id],
          logprobs: { content: [entries[index]] },
        },
      ],
      ...(last ? { usage } : {}),
    });
  });
  return { body: JSON.stringify(body), chunks };
}

/** Token ids as a vocabulary of 150,000 has them; always the same. */
function ids(count: number): number[] {
  let state = 12_345;
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % 150_000;
  });
}

function words(chars: number): string {
  return "lorem ipsum dolor sit amet ".repeat(Math.ceil(chars / 27)).slice(0, chars);
}
