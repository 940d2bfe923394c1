/** Arms 2 and 3: what can be made of the harness's own messages, by rendering and tokenizing them again. */

import type { Tokenizer } from "../../../packages/reference-engine/src/lm/tokenizer.js";
import { type ChatMessage, tokenizeEpisode } from "../../../packages/reference-engine/src/lm/training/episode.js";
import type { Transcript } from "../harness/rollout.js";
import { type TrainingSample, tokenWeights } from "../trainer/training-sample.js";

/** plain: chat messages as an export has them, arguments as a JSON string, no reasoning · careful: reasoning and arguments kept as the template wants them. */
export type TranscriptStyle = "plain" | "careful";

export interface TranscriptReader {
  readonly tokenizer: Tokenizer;
  /** Renders with the policy's own chat template. */
  readonly render: (messages: readonly ChatMessage[], addGenerationPrompt: boolean) => string;
}

/** One training sample a rollout: every assistant token trains. Nothing says with which log probability it was sampled. */
export function samplesFromTranscripts(
  rollouts: readonly { readonly transcript: Transcript; readonly advantage: number }[],
  style: TranscriptStyle,
  { tokenizer, render }: TranscriptReader,
): TrainingSample[] {
  return rollouts.map(({ transcript, advantage }) => {
    const { ids, sampled } = tokenizeEpisode(render(chatMessages(transcript, style), false), tokenizer);
    return {
      tokens: ids,
      mask: sampled,
      weights: tokenWeights(sampled, 1, rollouts.length),
      advantages: new Float64Array(ids.length).fill(advantage),
      oldLogprobs: null,
    };
  });
}

function chatMessages(transcript: Transcript, style: TranscriptStyle): ChatMessage[] {
  return transcript.map(({ role, content, reasoning, toolCalls }) => ({
    role,
    content,
    ...(reasoning === null || style === "plain" ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            // The template takes both; the type of the training episodes knows objects only.
            function: {
              name: call.name,
              arguments: (style === "plain" ? JSON.stringify(call.arguments) : call.arguments) as Record<
                string,
                string
              >,
            },
          })),
        }),
  }));
}
