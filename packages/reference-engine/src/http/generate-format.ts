import type { Draw } from "../policy/policy.js";
import type { Choice, FormatContext, ReplyFormat, Usage } from "./call.js";

export interface GenerateFormatOptions {
  returnPromptIds: boolean;
}

/** The shapes of `POST /inference/v1/generate`. There is no stop reason: the last id tells. */
export function createGenerateFormat(context: FormatContext, options: GenerateFormatOptions): ReplyFormat {
  const drawn = new Map<Choice, Draw[]>(context.choices.map((choice) => [choice, []]));
  const drawsOf = (choice: Choice): Draw[] => drawn.get(choice)!;
  return {
    head: () => [],
    step(choice, step) {
      const { draws } = step;
      const before = drawsOf(choice).length;
      drawsOf(choice).push(...draws);
      return [
        {
          request_id: context.requestId,
          choices: [
            {
              index: choice.index,
              ...context.tokens.tokenIds(
                draws.map(({ id }) => id),
                before,
              ),
              finish_reason: step.finish?.reason ?? null,
              logprobs: draws.length === 0 ? null : context.tokens.generateLogprobs(draws, before),
              ...(step.finish === null ? {} : { weight_versions: choice.record.weightVersions }),
            },
          ],
          usage: null,
        },
      ];
    },
    usage: (usage) => ({ request_id: context.requestId, choices: [], usage }),
    whole: (usage) => wholeReply(context, options, drawsOf, usage),
  };
}

function wholeReply(
  context: FormatContext,
  options: GenerateFormatOptions,
  drawsOf: (choice: Choice) => Draw[],
  usage: Usage,
): object {
  const [first] = context.choices;
  const shown = first !== undefined && options.returnPromptIds ? context.tokens.promptTokenIds(first.prompt.ids) : {};
  return {
    request_id: context.requestId,
    model: context.model,
    created: context.created,
    output_mode: "tokens",
    choices: context.choices.map((choice) => ({
      index: choice.index,
      ...context.tokens.tokenIds(choice.record.ids),
      finish_reason: choice.record.finish?.reason ?? null,
      logprobs: context.tokens.generateLogprobs(drawsOf(choice), 0),
      weight_versions: choice.record.weightVersions,
      routed_experts: null,
      sampling_mask: null,
    })),
    prompt_logprobs: context.tokens.promptLogprobs(first?.promptScores ?? null),
    prompt_token_ids: shown.prompt_token_ids ?? null,
    kv_transfer_params: null,
    usage,
  };
}
