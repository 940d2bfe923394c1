/** Conversation of a Messages request → messages. Tool results leave the user message they travel in. */
import { type ContentPart, type Message, TitoError } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import { type JsonNode, rawText } from "../json/raw-json.js";
import { completeCallIds } from "./call-ids.js";
import { joinTexts, readTextContent } from "./text-content.js";
import { unwrapArguments } from "./tool-input.js";

export interface Conversation {
  messages: Message[];
  ignored: string[];
}

/** @throws TitoError `bad_request` or `unsupported` that names the message and block. */
export function readConversation(fields: Fields, references: ReadonlyMap<string, string>): Conversation {
  const messages: Message[] = [];
  const ignored = new Set<string>();
  const system = fields.value("system");
  if (system !== null) messages.push({ role: "system", content: readText(system, "system", references) });
  const entries = fields.objects("messages");
  if (entries.length === 0) throw new TitoError("bad_request", "messages: at least one message is needed");
  for (const entry of entries) {
    const role = entry.requiredString("role");
    const content = entry.value("content");
    switch (role) {
      case "system":
        messages.push({ role, content: readText(content, entry.path("content"), references) });
        break;
      case "user":
        messages.push(...readUser(content, entry.path("content"), references, ignored));
        break;
      case "assistant":
        messages.push(readAssistant(content, entry.path("content")));
        break;
      default:
        throw new TitoError("bad_request", `${entry.path("role")}: ${JSON.stringify(role)} is not a role of this API`);
    }
  }
  return { messages: completeCallIds(messages), ignored: [...ignored] };
}

function readText(
  node: JsonNode | null,
  where: string,
  references: ReadonlyMap<string, string>,
): string | ContentPart[] {
  return readTextContent(node, where, (part, type) => {
    if (type === "text") return part.requiredString("text");
    if (type !== "tool_reference") return null;
    const name = part.requiredString("tool_name");
    const text = references.get(name);
    if (text === undefined)
      throw new TitoError("bad_request", `${part.path("tool_name")}: no tool is called ${JSON.stringify(name)}`);
    return text;
  });
}

/** Blocks of a user message, in order: each tool result a tool message, each run of texts a user message. */
function readUser(
  content: JsonNode | null,
  where: string,
  references: ReadonlyMap<string, string>,
  ignored: Set<string>,
): Message[] {
  if (content === null || content.type !== "array")
    return [{ role: "user", content: readText(content, where, references) }];
  const messages: Message[] = [];
  let texts: string[] = [];
  const flush = () => {
    if (texts.length > 0) messages.push({ role: "user", content: joinTexts(texts) });
    texts = [];
  };
  for (const [index, node] of content.items.entries()) {
    const block = Fields.of(node, `${where}[${index}]`);
    const type = block.requiredString("type");
    if (type === "text") {
      texts.push(block.requiredString("text"));
    } else if (type === "tool_result") {
      flush();
      if (block.boolean("is_error") === true) ignored.add("tool_result.is_error");
      const result = readText(block.value("content"), block.path("content"), references);
      messages.push({ role: "tool", tool_call_id: block.string("tool_use_id") ?? "", content: result });
    } else {
      throw unsupported(block.where, `a block of type ${type} cannot be given to the policy; only text can`);
    }
  }
  flush();
  return messages.length > 0 ? messages : [{ role: "user", content: "" }];
}

function readAssistant(content: JsonNode | null, where: string): Message {
  if (content === null || content.type !== "array")
    return { role: "assistant", content: content?.type === "string" ? content.value : "" };
  const message: Message = { role: "assistant", content: null };
  for (const [index, node] of content.items.entries()) {
    const block = Fields.of(node, `${where}[${index}]`);
    const type = block.requiredString("type");
    switch (type) {
      case "text":
        message.content = `${typeof message.content === "string" ? message.content : ""}${block.requiredString("text")}`;
        break;
      case "thinking": {
        const thinking = block.string("thinking") ?? "";
        if (thinking !== "") message.reasoning = (message.reasoning ?? "") + thinking;
        break;
      }
      case "tool_use": {
        const input = block.value("input");
        const call = { id: block.string("id") ?? "", name: block.requiredString("name") };
        message.tool_calls = [
          ...(message.tool_calls ?? []),
          { ...call, arguments: input === null ? "{}" : unwrapArguments(input, rawText(input)) },
        ];
        break;
      }
      default:
        throw unsupported(block.where, `a block of type ${type} cannot be given to the policy`);
    }
  }
  return message;
}
