/** Responses request body → neutral request. */
import type { Message, ToolDefinition } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import { parseJsonBody } from "../json/raw-json.js";
import type { NeutralRequest } from "./neutral.js";
import { anyCall, namedCall, type OutputDemand, responseFormat } from "./output-constraints.js";
import { readInput } from "./responses-input.js";
import { namespacedName, readResponsesTools } from "./responses-tools.js";
import { readSampling } from "./sampling.js";

/** Fields that would need state or abilities on our side. Each is refused when it has a value that asks for something. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["previous_response_id", "responses are not stored here; send the whole input (store: false)"],
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
  const { toolChoice, constraints } = readDemand(fields, tools);
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
    ...(constraints.size > 0 ? { constraints } : {}),
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
}

function readDemand(fields: Fields, tools: readonly ToolDefinition[]): OutputDemand {
  const constraints = new Map<string, string>();
  const format = responseFormat(fields.object("text")?.object("format") ?? null);
  if (format !== null) constraints.set("response_format", format);
  const choice = fields.value("tool_choice");
  if (choice === null) return { toolChoice: "auto", constraints };
  if (choice.type === "string") {
    if (choice.value === "auto" || choice.value === "none") return { toolChoice: choice.value, constraints };
    if (choice.value !== "required") throw unsupported("tool_choice", `${JSON.stringify(choice.value)} is not known`);
    return { toolChoice: "auto", constraints: constraints.set("tool_choice", anyCall(tools)) };
  }
  const named = Fields.of(choice, "tool_choice");
  const type = named.requiredString("type");
  // A custom tool is offered as a function of one string, under its own name.
  if (type !== "function" && type !== "custom")
    throw unsupported("tool_choice", `a choice of type ${type} cannot be expressed by a chat request`);
  const namespace = named.string("namespace");
  const name = named.requiredString("name");
  const known = namespace === null ? name : namespacedName(namespace, name);
  return { toolChoice: "auto", constraints: constraints.set("tool_choice", namedCall(known, tools, "tool_choice")) };
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
