/** The second harness: a tool loop of forty lines on the OpenAI SDK. It echoes what it got, as such loops do. */
import { DEMO_TOOLS, SYSTEM_PROMPT } from "@tito/reference-engine";
import OpenAI from "openai";
import { CALLS_MAX, type Harness, type Transcript, type TranscriptMessage } from "./rollout.js";
import { useTool } from "./tools.js";

const DATE = new Date().toISOString().slice(0, 10);

type Message = OpenAI.ChatCompletionMessageParam;
type Answer = OpenAI.ChatCompletionMessage & { reasoning?: string; reasoning_content?: string };

/** Plays one rollout without streaming. The system prompt has the form of Pi's. */
export const playToolLoop: Harness = async (play) => {
  const client = new OpenAI({ baseURL: play.baseUrl, apiKey: play.apiKey, maxRetries: 0 });
  const system = `${SYSTEM_PROMPT}\nCurrent date: ${DATE}\nCurrent working directory: ${play.directory}`;
  const messages: Message[] = [
    { role: "system", content: system },
    { role: "user", content: play.prompt },
  ];
  for (let call = 0; call < CALLS_MAX; call++) {
    const request = {
      model: "policy",
      messages,
      tools: [...DEMO_TOOLS] as unknown as OpenAI.ChatCompletionTool[],
      max_tokens: 64,
    };
    const reply = await client.chat.completions.create(request, { signal: play.signal });
    const answer = reply.choices[0]!.message;
    messages.push(answer);
    if (answer.tool_calls === undefined || answer.tool_calls.length === 0) break;
    for (const toolCall of answer.tool_calls) {
      if (toolCall.type !== "function") continue;
      const content = useTool(toolCall.function.name, parseArguments(toolCall.function.arguments), play.files);
      messages.push({ role: "tool", tool_call_id: toolCall.id, content });
    }
  }
  return transcriptOf(messages);
};

/** Arguments that are no JSON object are as good as none: the tool answers "error". */
function parseArguments(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function transcriptOf(messages: readonly Message[]): Transcript {
  return messages.map((message): TranscriptMessage => {
    const answer = message as Answer;
    return {
      role: message.role as TranscriptMessage["role"],
      content: typeof message.content === "string" ? message.content : null,
      reasoning: answer.reasoning_content ?? answer.reasoning ?? null,
      toolCalls: (answer.tool_calls ?? []).flatMap((call) =>
        call.type === "function"
          ? [{ name: call.function.name, arguments: parseArguments(call.function.arguments) }]
          : [],
      ),
    };
  });
}
