import type { Step } from "../generate/loop.js";
import type { Finish } from "../generate/stop-rules.js";
import type { Draw } from "../policy/policy.js";
import type { Choice, FormatContext, ReplyFormat } from "./call.js";

/** What a choice has come to. */
interface ChoiceText {
  draws: Draw[];
  text: string;
  finish: Finish | null;
  /** The prompt ids were sent. */
  begun: boolean;
}

/** The shapes of `POST /v1/completions`: prompt ids and sampled ids per choice, in a stream the prompt's with its first chunk. */
export function createCompletionFormat(context: FormatContext): ReplyFormat {
  const texts = new Map<Choice, ChoiceText>(
    context.choices.map((choice) => [choice, { draws: [], text: "", finish: null, begun: false }]),
  );
  const textOf = (choice: Choice): ChoiceText => texts.get(choice)!;
  return {
    head: () => [],
    step: (choice, step) => streamChunks(context, choice, textOf(choice), step),
    usage: (usage) => reply(context, { choices: [], usage }),
    whole: (usage) =>
      reply(context, {
        choices: context.choices.map((choice) => wholeChoice(context, choice, textOf(choice))),
        service_tier: null,
        system_fingerprint: null,
        usage,
        kv_transfer_params: null,
        ...versionOf(context, context.choices[0]),
      }),
  };
}

function streamChunks(context: FormatContext, choice: Choice, so: ChoiceText, step: Step): object[] {
  const before = so.draws.length;
  const offset = so.text.length;
  const { draws } = step;
  const fresh = step.pieces.map(({ text }) => text).join("");
  so.draws.push(...draws);
  so.text += fresh;
  so.finish = step.finish;
  if (fresh === "" && step.finish === null && !context.tokens.hasEvidence) return [];
  const first = !so.begun;
  so.begun = true;
  return [
    reply(context, {
      choices: [
        {
          index: choice.index,
          text: fresh,
          logprobs: draws.length === 0 ? null : context.tokens.completionLogprobs(draws, before, offset),
          finish_reason: step.finish?.reason ?? null,
          stop_reason: step.finish?.stopReason ?? null,
          ...(first ? context.tokens.promptTokenIds(choice.prompt.ids) : {}),
          ...context.tokens.tokenIds(
            draws.map(({ id }) => id),
            before,
          ),
          ...(step.finish === null ? {} : spansOf(context, choice)),
        },
      ],
      ...(step.finish === null ? {} : versionOf(context, choice)),
    }),
  ];
}

function wholeChoice(context: FormatContext, choice: Choice, so: ChoiceText): object {
  const { token_ids = null } = context.tokens.tokenIds(choice.record.ids);
  const { prompt_token_ids = null } = context.tokens.promptTokenIds(choice.prompt.ids);
  return {
    index: choice.index,
    text: so.text,
    logprobs: context.tokens.completionLogprobs(so.draws, 0, 0),
    finish_reason: so.finish?.reason ?? null,
    stop_reason: so.finish?.stopReason ?? null,
    token_ids,
    prompt_logprobs: context.tokens.promptLogprobs(choice.promptScores),
    prompt_token_ids,
    routed_experts: null,
    ...spansOf(context, choice),
  };
}

function spansOf(context: FormatContext, choice: Choice): object {
  const { weight_versions } = context.weightFields(choice);
  return weight_versions === undefined ? {} : { weight_versions };
}

function versionOf(context: FormatContext, choice: Choice | undefined): object {
  if (choice === undefined) return {};
  const { weight_version } = context.weightFields(choice);
  return weight_version === undefined ? {} : { weight_version };
}

function reply(context: FormatContext, fields: object): object {
  return {
    id: `cmpl-${context.requestId}`,
    object: "text_completion",
    created: context.created,
    model: context.model,
    ...fields,
  };
}
