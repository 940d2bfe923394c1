import { TitoError } from "@tito/format";
import { z } from "zod";
import type { Shield } from "./shield.js";

/** What the template is given as `messages` and `tools`: fresh objects with known keys only. */
export interface Conversation {
  messages: unknown[];
  tools: unknown[] | null;
}

const contentSchema = z.union([
  z.string(),
  z.array(z.looseObject({ type: z.string(), text: z.string().optional(), refusal: z.string().optional() })),
]);

const messageSchema = z.object({
  role: z.string().min(1),
  content: contentSchema.nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  name: z.string().nullish(),
  tool_call_id: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        id: z.string().nullish(),
        function: z.object({ name: z.string(), arguments: z.unknown().optional() }),
      }),
    )
    .nullish(),
});

const toolSchema = z.object({
  function: z.object({
    name: z.string().min(1),
    description: z.unknown().optional(),
    parameters: z.unknown().optional(),
  }),
});

const conversationSchema = z.object({
  messages: z.array(messageSchema).min(1),
  tools: z.array(toolSchema).nullish(),
});

type InputMessage = z.infer<typeof messageSchema>;

/**
 * Reads OpenAI chat messages the way vLLM does before it renders: a single text part as a string, arguments as objects (`{}` when
 * they are not one), reasoning under both of its names, unknown keys dropped. Throws `bad_request`.
 */
export function readConversation(body: unknown, shield: Shield): Conversation {
  const parsed = conversationSchema.safeParse(body);
  if (!parsed.success) throw new TitoError("bad_request", z.prettifyError(parsed.error).replaceAll("\n", " "));
  const { messages, tools } = parsed.data;
  return {
    messages: messages.map((message) => shield.protect(templateMessage(message, shield))),
    tools: tools == null || tools.length === 0 ? null : tools.map((tool) => shield.protect(templateTool(tool))),
  };
}

function templateMessage(message: InputMessage, shield: Shield): Record<string, unknown> {
  const out: Record<string, unknown> = { role: message.role, content: templateContent(message.content) };
  const reasoning = message.reasoning ?? message.reasoning_content;
  if (typeof reasoning === "string") {
    out.reasoning = reasoning;
    out.reasoning_content = reasoning;
  }
  if (typeof message.name === "string") out.name = message.name;
  if (typeof message.tool_call_id === "string") out.tool_call_id = message.tool_call_id;
  if (message.tool_calls != null && message.tool_calls.length > 0) {
    out.tool_calls = message.tool_calls.map((call) => ({
      id: call.id ?? null,
      type: "function",
      function: { name: call.function.name, arguments: argumentsObject(call.function.arguments, shield) },
    }));
  }
  return out;
}

/** Several parts stay parts: how they are joined is the template's business. */
function templateContent(content: InputMessage["content"]): string | { type: "text"; text: string }[] {
  if (content == null) return "";
  if (typeof content === "string") return content;
  const parts = content.map((part): { type: "text"; text: string } => {
    const text = part.text ?? part.refusal;
    if (text !== undefined) return { type: "text", text };
    throw new TitoError(
      "bad_request",
      `content parts of type "${part.type}" are not supported: the model reads text only`,
    );
  });
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only.text : parts;
}

function argumentsObject(value: unknown, shield: Shield): unknown {
  let parsed = value;
  if (typeof value === "string") {
    try {
      parsed = shield.parse(value);
    } catch {
      return {};
    }
  }
  return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? parsed : {};
}

function templateTool(tool: z.infer<typeof toolSchema>): Record<string, unknown> {
  const { name, description, parameters } = tool.function;
  const declared: Record<string, unknown> = { name };
  if (description !== undefined) declared.description = description;
  if (parameters !== undefined) declared.parameters = parameters;
  return { type: "function", function: declared };
}
