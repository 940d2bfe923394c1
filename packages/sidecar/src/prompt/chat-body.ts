/** A neutral request as an OpenAI chat body: how a dialect that the engine does not speak is translated. Schemas and arguments keep their spelling. */
import type { ContentPart, Message, ToolDefinition } from "@tito/format";
import type { NeutralRequest } from "../dialect/neutral.js";

/** JSON text of the chat body, without model, stream and sampling policy, which the engine adapter adds. */
export function chatBody(request: NeutralRequest): string {
  const members = [`"messages":[${request.messages.map(chatMessage).join(",")}]`];
  if (request.tools.length > 0) {
    members.push(`"tools":[${request.tools.map(chatTool).join(",")}]`);
    const forced = request.constraints?.has("tool_choice") === true;
    if (!forced) members.push(`"tool_choice":${JSON.stringify(request.toolChoice)}`);
  }
  if (request.maxOutputTokens !== null) members.push(`"max_completion_tokens":${request.maxOutputTokens}`);
  if (request.stop.length > 0) members.push(`"stop":${JSON.stringify(request.stop)}`);
  for (const [name, value] of Object.entries(request.sampling)) members.push(`${JSON.stringify(name)}:${value}`);
  for (const [name, value] of request.constraints ?? []) members.push(`${JSON.stringify(name)}:${value}`);
  return `{${members.join(",")}}`;
}

function chatMessage(message: Message): string {
  return JSON.stringify({
    role: message.role,
    ...(message.content === undefined ? {} : { content: chatContent(message.content) }),
    // Under both names: some engines, and some of their routes, read only the one or the other.
    ...(message.reasoning === undefined ? {} : { reasoning_content: message.reasoning, reasoning: message.reasoning }),
    ...(message.tool_calls === undefined
      ? {}
      : {
          tool_calls: message.tool_calls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
    ...(message.tool_call_id === undefined ? {} : { tool_call_id: message.tool_call_id }),
    ...(message.name === undefined ? {} : { name: message.name }),
  });
}

function chatContent(content: string | ContentPart[] | null): unknown {
  if (!Array.isArray(content)) return content;
  return content.flatMap((part) => (part.type === "text" ? [{ type: "text", text: part.text }] : []));
}

function chatTool(tool: ToolDefinition): string {
  const members = [`"name":${JSON.stringify(tool.name)}`];
  if (tool.description !== undefined) members.push(`"description":${JSON.stringify(tool.description)}`);
  if (tool.parameters !== undefined) members.push(`"parameters":${tool.parameters}`);
  return `{"type":"function","function":{${members.join(",")}}}`;
}
