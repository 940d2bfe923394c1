import type { Engine } from "../engine.js";
import { outputTooLong, promptTooLong, toApiError, unknownModel } from "../errors.js";
import { createHooks } from "../faults/hooks.js";
import type { Fault } from "../faults/schema.js";
import { coalesce } from "../generate/coalesce.js";
import { type Step, sampleChoice } from "../generate/loop.js";
import type { Passage } from "../generate/traffic.js";
import type { Choice, GenerationCall, Usage } from "./call.js";
import { strikeBeforeHeaders } from "./fault-replies.js";
import { type JsonBody, readJsonBody } from "./json-body.js";
import type { Reply } from "./reply.js";
import type { Run } from "./run.js";
import { sendStream, sendWhole } from "./send.js";
import { TokenView } from "./token-view.js";

/** A request on its way through an endpoint. */
export interface Exchange {
  path: string;
  bodyText: string;
  reply: Reply;
  /** Reads the body as the endpoint's request. */
  read(engine: Engine, body: JsonBody): GenerationCall;
}

/** Answers one request for tokens: read, check, sample, send. Never throws. */
export async function answer(engine: Engine, exchange: Exchange): Promise<void> {
  const { reply } = exchange;
  engine.board.count("running", 1);
  let passage: Passage | null = null;
  try {
    const queued = engine.board.take(exchange.path, exchange.bodyText, { onlyNamed: false });
    if (queued !== null && (await strikeBeforeHeaders(engine, queued, reply))) return;
    await engine.traffic.admit(reply.gone);
    const call = exchange.read(engine, readJsonBody(exchange.bodyText));
    passage = engine.traffic.enter();
    const run = startRun(engine, exchange, call, { queued, passage });
    if (run.fault !== queued && run.fault !== null && (await strikeBeforeHeaders(engine, run.fault, reply))) return;
    await (call.stream === null ? sendWhole(run) : sendStream(run));
  } catch (error) {
    sendError(reply, error);
  } finally {
    passage?.leave();
    engine.board.count("running", -1);
    engine.board.count(reply.gone.aborted ? "aborted" : "finished", 1);
  }
}

function sendError(reply: Reply, error: unknown): void {
  const apiError = toApiError(error);
  if (!reply.started && !reply.gone.aborted) reply.json(apiError.status, apiError.body());
  else reply.cut("rst");
}

function startRun(
  engine: Engine,
  exchange: Exchange,
  call: GenerationCall,
  { queued, passage }: { queued: Fault | null; passage: Passage },
): Run {
  if (call.model !== null && call.model !== engine.options.model) throw unknownModel(call.model);
  const limits = call.prompts.map((prompt) => outputLimit(engine, call, prompt.ids.length));
  const cached = call.prompts.map((prompt) => engine.history.cachedTokens(prompt.ids));
  const weights = engine.weights.current;
  const { version } = weights;
  const choices = call.prompts.flatMap((_, index) =>
    startChoices({ engine, weights, call }, index, limits[index] ?? 1),
  );
  const fault = queued ?? choices.find(({ sampler }) => sampler.fault !== null)?.sampler.fault ?? null;
  const tokens = new TokenView({ vocabulary: engine.vocabulary, fault, streamed: call.stream !== null, ...call });
  const format = call.format({
    requestId: exchange.reply.requestId,
    created: Math.floor(Date.now() / 1000),
    model: engine.options.model,
    choices,
    tokens,
    weightFields: ({ record }) =>
      version.everSet
        ? {
            weight_version: record.weightVersions.at(-1)?.version ?? version.current,
            weight_versions: record.weightVersions,
          }
        : {},
  });
  const run: Run = {
    engine,
    path: exchange.path,
    reply: exchange.reply,
    call,
    choices,
    weights,
    passage,
    format,
    fault,
    usage: () =>
      usageOf(
        run,
        cached.reduce((sum, count) => sum + count, 0),
      ),
    steps: (choice) => loggedSteps(run, choice),
  };
  return run;
}

/** How many tokens may be sampled. Throws vLLM's overflow errors. */
function outputLimit(engine: Engine, call: GenerationCall, promptTokens: number): number {
  const { maxModelLen } = engine;
  if (promptTokens >= maxModelLen) throw promptTooLong(maxModelLen, promptTokens);
  const room = maxModelLen - promptTokens;
  if (call.maxTokens !== null && call.maxTokens > room) throw outputTooLong(maxModelLen, promptTokens, call.maxTokens);
  return call.maxTokens ?? Math.min(call.defaultMaxTokens ?? room, room);
}

/** The n choices of one prompt; choices are numbered prompt by prompt. */
function startChoices(
  { engine, weights, call }: Pick<Run, "engine" | "weights" | "call">,
  promptIndex: number,
  maxTokens: number,
): Choice[] {
  const prompt = call.prompts[promptIndex];
  if (prompt === undefined) return [];
  engine.history.remember(prompt.ids);
  const promptScores =
    call.promptLogprobs === null
      ? null
      : weights.policy.scorePrompt(prompt.ids, call.promptLogprobs.temperature, call.promptLogprobs.topCount);
  return Array.from({ length: call.n }, (_, choice) => {
    const occurrence = engine.history.occurrence(prompt.ids);
    const sampling = call.sampling;
    return {
      index: promptIndex * call.n + choice,
      prompt,
      occurrence,
      sampler: weights.policy.start({ prompt, sampling, choice, occurrence, topCount: call.topCount ?? 0 }),
      stop: { ...call.stop, maxTokens },
      record: { ids: [], logprobs: [], weightVersions: [], finish: null },
      promptScores,
    };
  });
}

async function* loggedSteps(run: Run, choice: Choice): AsyncGenerator<Step, void, void> {
  let logged = false;
  const log = () => {
    if (!logged) logChoice(run, choice);
    logged = true;
  };
  try {
    const loop = sampleChoice({
      sampler: choice.sampler,
      stop: choice.stop,
      skipSpecialTokens: run.call.skipSpecialTokens,
      vocabulary: run.engine.vocabulary,
      weightVersion: run.weights.version,
      passage: run.passage,
      hooks: createHooks(run.fault, run.engine.board),
      signal: run.reply.gone,
      delayMs: run.engine.options.tokenDelayMs,
      record: choice.record,
    });
    const steps = run.fault?.kind === "coalesce" ? coalesce(loop, run.fault.tokens) : loop;
    for await (const step of steps) {
      if (step.finish !== null) log();
      yield step;
    }
  } finally {
    log();
  }
}

function logChoice({ engine, weights, path, reply, call, fault }: Run, choice: Choice): void {
  const { record } = choice;
  if (weights.policy === engine.weights.current.policy) engine.history.remember([...choice.prompt.ids, ...record.ids]);
  engine.log.add({
    request_id: reply.requestId,
    path,
    model: engine.options.model,
    choice: choice.index,
    prompt_ids: choice.prompt.ids,
    sampled_ids: record.ids,
    logprobs: record.logprobs,
    finish: record.finish?.reason ?? null,
    stop_reason: record.finish?.stopReason ?? null,
    aborted: record.finish === null && reply.gone.aborted,
    fault: fault?.kind ?? null,
    seed: call.sampling.seed,
    sampling: call.sampling,
    weight_versions: record.weightVersions,
  });
}

function usageOf({ call, choices, fault, engine }: Run, cachedTokens: number): Usage {
  const wrong = fault?.kind === "wrong_usage" ? fault : { promptTokens: 0, completionTokens: 0 };
  const promptTokens = call.prompts.reduce((sum, prompt) => sum + prompt.ids.length, 0) + wrong.promptTokens;
  const completionTokens = choices.reduce((sum, { record }) => sum + record.ids.length, 0) + wrong.completionTokens;
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + completionTokens,
    completion_tokens: completionTokens,
    prompt_tokens_details: engine.options.promptTokensDetails ? { cached_tokens: cachedTokens } : null,
  };
}
