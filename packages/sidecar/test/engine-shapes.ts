/**
 * Servers that speak other engines' wire shapes, as documented: the embedded engine samples, and its replies are told in the other's words.
 * They stand for engines that cannot run here; what they show is that a call goes through the whole sidecar in that shape.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

type Json = Record<string, unknown>;
export type Shape = "sglang" | "fireworks" | "llamacpp";

interface Sampled {
  promptIds: number[];
  ids: number[];
  logprobs: number[];
  finish: string;
  stop: number | string | null;
}

export interface ShapedEngine {
  url: string;
  /** Bodies of the calls, in order. */
  calls: { path: string; body: Json }[];
}

/** `ends`: the ids at which the llama.cpp shape ends a turn. */
export async function engineSpeaking(shape: Shape, engine: { url: string }, ends = [369, 367]): Promise<ShapedEngine> {
  const calls: ShapedEngine["calls"] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const body = text === "" ? null : (JSON.parse(text) as Json);
      const path = request.url ?? "";
      if (body !== null) calls.push({ path, body });
      answer(shape, engine.url, ends, { path, body, response }).catch(() => response.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

interface Asked {
  path: string;
  body: Json | null;
  response: ServerResponse;
}

async function answer(shape: Shape, engine: string, ends: number[], { path, body, response }: Asked): Promise<void> {
  if (path === "/v1/models") {
    const entry = {
      id: "policy",
      object: "model",
      owned_by: shape,
      ...(shape === "llamacpp" ? {} : { max_model_len: 4096, context_length: 4096 }),
    };
    return reply(response, { object: "list", data: [entry] });
  }
  if (body === null) return reply(response, infoOf(shape, path), infoOf(shape, path) === null ? 404 : 200);
  if (shape === "llamacpp") return llamacpp(engine, ends, path, body, response);
  if (path === "/tokenize" && shape === "sglang") return reply(response, await post(`${engine}/tokenize`, body));
  if (path === "/v1/chat/completions") return chat(shape, engine, body, response);
  if (shape === "sglang") return sglang(await sample(engine, inSglangsWords(body)), body, response);
  return fireworks(await sample(engine, body), body, response);
}

function infoOf(shape: Shape, path: string): Json | null {
  if (shape === "sglang" && path === "/server_info") return { version: "0.5.20" };
  if (shape === "sglang" && path === "/model_info") return { weight_version: "step-7" };
  if (shape === "llamacpp" && path === "/props")
    return { build_info: "b1-abc", default_generation_settings: { n_ctx: 4096 } };
  return null;
}

/** One completion of the embedded engine. */
async function sample(engine: string, body: Json): Promise<Sampled> {
  const asked = { logprobs: 1, return_token_ids: true, return_tokens_as_token_ids: true, skip_special_tokens: false };
  const names = ["prompt", "max_tokens", "temperature", "top_p", "seed", "stop", "stop_token_ids"];
  const sent = Object.fromEntries(names.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])));
  const whole = (await post(`${engine}/v1/completions`, { model: "policy", ...sent, ...asked })) as {
    choices: {
      token_ids: number[];
      prompt_token_ids: number[];
      finish_reason: string;
      stop_reason: number | string | null;
      logprobs: { token_logprobs: number[] };
    }[];
  };
  const choice = whole.choices[0]!;
  return {
    promptIds: choice.prompt_token_ids,
    ids: choice.token_ids,
    logprobs: choice.logprobs.token_logprobs,
    finish: choice.finish_reason,
    stop: choice.stop_reason ?? choice.token_ids.at(-1) ?? null,
  };
}

/** The chat route: SGLang tells ids once, behind the last chunk; Fireworks tells two values for each token. */
async function chat(shape: Shape, engine: string, body: Json, response: ServerResponse): Promise<void> {
  const answered = await fetch(`${engine}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answered.text();
  const streamed = body.stream === true && answered.ok;
  const texts = streamed
    ? text.split("\n\n").flatMap((event) => (event.startsWith("data: {") ? [event.slice(6)] : []))
    : [text];
  const pieces = texts.map((piece) => JSON.parse(piece) as Piece);
  const ids: number[] = [];
  let prompt: unknown;
  for (const piece of pieces) {
    const [choice] = piece.choices ?? [];
    if (shape === "fireworks") for (const entry of choice?.logprobs?.content ?? []) bothValues(entry);
    if (shape !== "sglang") continue;
    prompt ??= piece.prompt_token_ids;
    delete piece.prompt_token_ids;
    ids.push(...(choice?.token_ids ?? []));
    delete choice?.token_ids;
  }
  const extra = shape === "sglang" ? { sglext: { input_ids: prompt, output_ids: [ids] } } : {};
  if (!streamed) return reply(response, { ...pieces[0], ...extra }, answered.status);
  stream(response, shape === "sglang" ? [...pieces, { id: pieces[0]!.id, choices: [], ...extra }] : pieces);
}

interface Piece {
  id?: string;
  prompt_token_ids?: unknown;
  choices?: { token_ids?: number[]; logprobs?: { content?: Json[] } | null }[];
}

function bothValues(entry: Json): void {
  entry.sampling_logprob = entry.logprob;
  entry.logprob = -99;
}

function inSglangsWords({ input_ids, sampling_params }: Json): Json {
  const { max_new_tokens, sampling_seed, ...rest } = sampling_params as Json;
  return { ...rest, prompt: input_ids, max_tokens: max_new_tokens, seed: sampling_seed };
}

/** Each event of a stream repeats all before it. */
function sglang({ ids, logprobs, promptIds, finish, stop }: Sampled, body: Json, response: ServerResponse): void {
  const upTo = (count: number, last: boolean): Json => ({
    text: "",
    output_ids: ids.slice(0, count),
    meta_info: {
      id: "r1",
      finish_reason: last ? { type: finish, matched: stop } : null,
      prompt_tokens: promptIds.length,
      completion_tokens: count,
      cached_tokens: 0,
      weight_version: "step-7",
      output_token_logprobs: ids.slice(0, count).map((id, at) => [logprobs[at], id, null]),
      output_top_logprobs: ids.slice(0, count).map((id, at) => [[logprobs[at], id, null]]),
    },
  });
  if (body.stream !== true) reply(response, upTo(ids.length, true));
  else stream(response, [...ids.map((_id, at) => upTo(at + 1, false)), upTo(ids.length, true)]);
}

function fireworks({ ids, logprobs, promptIds, finish }: Sampled, body: Json, response: ServerResponse): void {
  const usage = { prompt_tokens: promptIds.length, completion_tokens: ids.length };
  const content = ids.map((id, at) => ({ token: "?", token_id: id, logprob: -99, sampling_logprob: logprobs[at] }));
  const choice = {
    index: 0,
    text: "",
    prompt_token_ids: promptIds,
    token_ids: ids,
    logprobs: { content },
    finish_reason: finish,
  };
  const pieces = ids.map((id, at) => ({
    id: "f1",
    choices: [
      {
        index: 0,
        text: "",
        ...(at === 0 ? { prompt_token_ids: promptIds } : {}),
        token_ids: [id],
        logprobs: { content: [content[at]] },
        finish_reason: at === ids.length - 1 ? finish : null,
      },
    ],
  }));
  const empty = { index: 0, text: "", prompt_token_ids: promptIds, token_ids: [], finish_reason: finish };
  if (pieces.length === 0) pieces.push({ id: "f1", choices: [empty as never] });
  if (body.stream === true) stream(response, [...pieces, { id: "f1", choices: [], usage }]);
  else reply(response, { id: "f1", object: "text_completion", choices: [choice], usage });
}

async function llamacpp(
  engine: string,
  ends: number[],
  path: string,
  body: Json,
  response: ServerResponse,
): Promise<void> {
  // The text of a chat is the chat itself here, so that the tokenizer's route can render it.
  if (path === "/apply-template") return reply(response, { prompt: JSON.stringify(body) });
  if (path === "/tokenize") {
    const chat = { ...(JSON.parse(body.content as string) as Json), model: "policy", add_generation_prompt: true };
    const { tokens } = (await post(`${engine}/tokenize`, chat)) as { tokens: number[] };
    return reply(response, { tokens });
  }
  const forced = (body.logit_bias as [number, number][] | undefined)?.[0]?.[0];
  const asked = { ...body, max_tokens: body.n_predict, stop_token_ids: ends };
  const ended = forced !== undefined && ends.includes(forced);
  const { ids, logprobs, finish, promptIds, stop } =
    forced === undefined
      ? await sample(engine, asked)
      : {
          ids: ended ? [forced] : [forced, forced],
          logprobs: [0, 0],
          finish: "stop",
          promptIds: body.prompt as number[],
          stop: null,
        };
  const word = typeof stop === "string";
  reply(response, {
    index: 0,
    content: "",
    tokens: ids,
    stop: true,
    model: "policy",
    tokens_predicted: ids.length,
    tokens_evaluated: promptIds.length,
    truncated: false,
    stop_type: finish === "length" || (forced !== undefined && !ended) ? "limit" : word ? "word" : "eos",
    stopping_word: word ? stop : "",
    timings: { cache_n: 0 },
    completion_probabilities: ids.map((id, at) => {
      const prob = Math.exp(logprobs[at]!);
      return { id, token: "?", bytes: [], prob, top_probs: [{ id, prob }] };
    }),
  });
}

async function post(url: string, body: Json): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return response.json();
}

function reply(response: ServerResponse, json: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
}

function stream(response: ServerResponse, events: readonly unknown[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end("data: [DONE]\n\n");
}
