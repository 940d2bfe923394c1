/** Responses request body → neutral request. */
import type { Message } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import { parseJsonBody } from "../json/raw-json.js";
import type { NeutralRequest } from "./neutral.js";
import { readInput } from "./responses-input.js";
import { readResponsesTools } from "./responses-tools.js";
import { readSampling } from "./sampling.js";

/** Fields that would need state or abilities on our side. Each is refused when it has a value that asks for something. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["previous_response_id", "responses are not stored here; send the whole input"],
  ["conversation", "conversations are not stored here; send the whole input"],
  ["prompt", "stored prompts do not exist here; send instructions and input"],
]);

/**
 * Reads the body of `POST /v1/responses`.
 * @throws TitoError `bad_request` for what is not a Responses request, `unsupported` for what cannot be told to the policy faithfully.
 */
export function parseResponsesRequest(body: Uint8Array): NeutralRequest {
  const fields = Fields.of(parseJsonBody(body), "");
  const model = fields.string("model");
  const stream = fields.boolean("stream") ?? false;
  refuseUnsupported(fields);
  const ignored: string[] = [];
  const { messages, ignored: ignoredInput } = readInput(fields, fields.string("instructions"));
  const { tools, callShapes, ignored: ignoredTools } = readResponsesTools(fields.objects("tools"));
  const toolChoice = readToolChoice(fields);
  const maxOutputTokens = fields.count("max_output_tokens");
  const sampling = readSampling(fields);
  ignored.push(...ignoredInput, ...ignoredTools, ...fields.unread());
  return {
    dialect: "responses",
    stream,
    includeUsage: true,
    model,
    messages: joinLeadingInstructions(messages),
    tools,
    toolChoice,
    maxOutputTokens,
    sampling,
    stop: [],
    wantsLogprobs: false,
    ignored,
    ...(callShapes.size > 0 ? { callShapes } : {}),
  };
}

function refuseUnsupported(fields: Fields): void {
  for (const [key, why] of REFUSED) {
    if (fields.value(key) !== null) throw unsupported(key, why);
  }
  if (fields.boolean("background") === true)
    throw unsupported("background", "only calls that wait for their answer are served");
  const top = fields.number("top_logprobs");
  if (top !== null && top > 0)
    throw unsupported("top_logprobs", "log probabilities are recorded, not returned, in this dialect");
  for (const [index, item] of (fields.array("include") ?? []).entries()) {
    if (item.type === "string" && item.value === "message.output_text.logprobs") {
      throw unsupported(`include[${index}]`, "log probabilities are recorded, not returned, in this dialect");
    }
  }
  const format = fields.object("text")?.object("format")?.string("type") ?? "text";
  if (format !== "text")
    throw unsupported("text.format", `output constrained to ${format} cannot be asked of the policy`);
}

function readToolChoice(fields: Fields): "auto" | "none" {
  const choice = fields.value("tool_choice");
  if (choice === null) return "auto";
  if (choice.type === "string" && (choice.value === "auto" || choice.value === "none")) return choice.value;
  throw unsupported("tool_choice", 'only "auto" and "none" can be expressed by a chat template');
}

/**
 * The leading system and developer messages are one instruction to the model, and most chat templates take one system message, first.
 * Later ones stay where they are, as system messages: chat templates know no developer role, and some drop unknown roles silently.
 */
function joinLeadingInstructions(messages: Message[]): Message[] {
  const first = messages.findIndex((message) => message.role !== "system");
  const leading = first < 0 ? messages : messages.slice(0, first);
  if (leading.length < 2) return messages;
  const parts = leading.flatMap((message) =>
    typeof message.content === "string" ? [{ type: "text" as const, text: message.content }] : (message.content ?? []),
  );
  return [{ role: "system", content: parts }, ...messages.slice(leading.length)];
}
