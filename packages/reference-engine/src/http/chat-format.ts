import type { Step } from "../generate/loop.js";
import type { Finish } from "../generate/stop-rules.js";
import type { Vocabulary } from "../model/vocabulary.js";
import { HermesParser, type MessageDelta } from "../parse/hermes.js";
import { hashOf } from "../policy/hash.js";
import type { Draw } from "../policy/policy.js";
import type { Choice, FormatContext, ReplyFormat, Usage } from "./call.js";

export interface ChatFormatOptions {
  readsToolCalls: boolean;
  vocabulary: Vocabulary;
}

/** What a choice's message has come to. */
interface ChoiceMessage {
  parser: HermesParser;
  draws: Draw[];
  reasoning: string;
  content: string;
  calls: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  finish: Finish | null;
}

/** The shapes of `POST /v1/chat/completions`: prompt ids at the top level, sampled ids per choice. */
export function createChatFormat(context: FormatContext, options: ChatFormatOptions): ReplyFormat {
  const messages = new Map(context.choices.map((choice) => [choice, openMessage(choice, options)]));
  const messageOf = (choice: Choice): ChoiceMessage => messages.get(choice)!;
  return {
    head: (choice) => [roleChunk(context, choice)],
    step(choice, step) {
      const message = messageOf(choice);
      const before = message.draws.length;
      const deltas = take(message, step);
      return streamChunks(context, { choice, message, step, deltas, before });
    },
    usage: (usage) => chunk(context, { choices: [], usage }),
    whole: (usage) => wholeReply(context, messageOf, usage),
  };
}

function openMessage(choice: Choice, options: ChatFormatOptions): ChoiceMessage {
  const seedOfIds = hashOf(choice.prompt.ids, choice.occurrence, choice.index);
  const parser = new HermesParser({
    startsInReasoning: endsInOpenThought(choice.prompt.ids, options.vocabulary),
    readsToolCalls: options.readsToolCalls,
    callId: (index) => `chatcmpl-tool-${hashOf(seedOfIds, index, choice.record.ids)}`,
  });
  return { parser, draws: [], reasoning: "", content: "", calls: [], finish: null };
}

/** Whether the template opened a thought for the answer to go on with. */
function endsInOpenThought(ids: readonly number[], vocabulary: Vocabulary): boolean {
  const open = vocabulary.markerOf("<think>")?.id;
  const close = vocabulary.markerOf("</think>")?.id;
  const turn = vocabulary.markerOf("<|im_start|>")?.id;
  if (open === undefined) return false;
  const last = ids.findLast((id) => id === open || id === close || id === turn);
  return last === open;
}

function take(message: ChoiceMessage, step: Step): MessageDelta[] {
  message.draws.push(...step.draws);
  message.finish = step.finish;
  const deltas = step.pieces.flatMap((piece) => message.parser.push(piece));
  if (step.finish !== null) deltas.push(...message.parser.end());
  for (const delta of deltas) {
    if (delta.kind === "reasoning") message.reasoning += delta.text;
    else if (delta.kind === "content") message.content += delta.text;
    else
      message.calls.push({
        id: delta.id,
        type: "function",
        function: { name: delta.name, arguments: delta.arguments },
      });
  }
  return deltas;
}

/** A normal stop becomes `tool_calls` when there are calls. */
function finishReason(message: ChoiceMessage): string | null {
  if (message.finish === null) return null;
  return message.finish.reason === "stop" && message.calls.length > 0 ? "tool_calls" : message.finish.reason;
}

function roleChunk(context: FormatContext, choice: Choice): object {
  const first = choice.index === 0;
  return chunk(context, {
    choices: [{ index: choice.index, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
    ...(first ? context.tokens.promptTokenIds(choice.prompt.ids) : {}),
  });
}

interface StreamedStep {
  choice: Choice;
  message: ChoiceMessage;
  step: Step;
  deltas: MessageDelta[];
  /** Tokens of the choice before this step. */
  before: number;
}

/** The chunks of one step: ids and log probabilities go with the first, the finish with the last. A step without text still reports its id. */
function streamChunks(context: FormatContext, { choice, message, step, deltas, before }: StreamedStep): object[] {
  const { draws } = step;
  const shapes = deltas.flatMap(deltaShapes);
  if (shapes.length === 0 && (step.finish !== null || (draws.length > 0 && context.tokens.hasEvidence)))
    shapes.push({});
  return shapes.map((delta, index) => {
    const first = index === 0;
    const last = index === shapes.length - 1 && step.finish !== null;
    return chunk(context, {
      choices: [
        {
          index: choice.index,
          delta,
          logprobs: first && draws.length > 0 ? context.tokens.chatLogprobs(draws, before) : null,
          finish_reason: last ? finishReason(message) : null,
          ...(last ? { stop_reason: step.finish?.stopReason ?? null } : {}),
          ...(first && draws.length > 0
            ? context.tokens.tokenIds(
                draws.map(({ id }) => id),
                before,
              )
            : {}),
          ...(last ? spansOf(context, choice) : {}),
        },
      ],
      ...(last ? versionOf(context, choice) : {}),
    });
  });
}

/** A call is announced first, with its id and name; its arguments follow. */
function deltaShapes(delta: MessageDelta): object[] {
  switch (delta.kind) {
    case "reasoning":
      return [{ reasoning: delta.text }];
    case "content":
      return [{ content: delta.text }];
    case "tool_call": {
      const { index, id, name } = delta;
      return [
        { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
        { tool_calls: [{ index, function: { arguments: delta.arguments } }] },
      ];
    }
  }
}

function wholeReply(context: FormatContext, messageOf: (choice: Choice) => ChoiceMessage, usage: Usage): object {
  const [first] = context.choices;
  const { prompt_token_ids = null } = first === undefined ? {} : context.tokens.promptTokenIds(first.prompt.ids);
  return {
    id: `chatcmpl-${context.requestId}`,
    object: "chat.completion",
    created: context.created,
    model: context.model,
    choices: context.choices.map((choice) => {
      const message = messageOf(choice);
      const { token_ids = null } = context.tokens.tokenIds(choice.record.ids);
      return {
        index: choice.index,
        message: {
          role: "assistant",
          content:
            message.content === "" && (message.calls.length > 0 || message.reasoning !== "") ? null : message.content,
          refusal: null,
          annotations: null,
          audio: null,
          function_call: null,
          tool_calls: message.calls,
          reasoning: message.reasoning === "" ? null : message.reasoning,
        },
        logprobs: context.tokens.chatLogprobs(message.draws, 0),
        finish_reason: finishReason(message),
        stop_reason: message.finish?.stopReason ?? null,
        token_ids,
        routed_experts: null,
        ...spansOf(context, choice),
      };
    }),
    service_tier: null,
    system_fingerprint: null,
    usage,
    prompt_logprobs: context.tokens.promptLogprobs(first?.promptScores ?? null),
    prompt_token_ids,
    kv_transfer_params: null,
    ...(first === undefined ? {} : versionOf(context, first)),
  };
}

function spansOf(context: FormatContext, choice: Choice): object {
  const { weight_versions } = context.weightFields(choice);
  return weight_versions === undefined ? {} : { weight_versions };
}

function versionOf(context: FormatContext, choice: Choice): object {
  const { weight_version } = context.weightFields(choice);
  return weight_version === undefined ? {} : { weight_version };
}

function chunk(context: FormatContext, fields: object): object {
  return {
    id: `chatcmpl-${context.requestId}`,
    object: "chat.completion.chunk",
    created: context.created,
    model: context.model,
    ...fields,
  };
}
