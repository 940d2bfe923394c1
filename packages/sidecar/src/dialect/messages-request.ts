/** Messages request body → neutral request. */
import { Fields, unsupported } from "../json/fields.js";
import { parseJsonBody } from "../json/raw-json.js";
import { readConversation } from "./messages-content.js";
import { readMessagesTools } from "./messages-tools.js";
import type { NeutralRequest } from "./neutral.js";
import { readSampling } from "./sampling.js";

/**
 * Reads the body of `POST /v1/messages` or of its count_tokens.
 * @throws TitoError `bad_request` for what is not a Messages request, `unsupported` for what cannot be told to the policy faithfully.
 */
export function parseMessagesRequest(body: Uint8Array): NeutralRequest {
  const fields = Fields.of(parseJsonBody(body), "");
  refuseUnsupported(fields);
  const { tools, references } = readMessagesTools(fields.objects("tools"));
  const { messages, ignored } = readConversation(fields, references);
  const last = messages.at(-1);
  if (last?.role === "assistant") {
    throw unsupported(
      "messages",
      "the last message is the assistant's; a prefilled answer cannot be continued through a chat template",
    );
  }
  const stop = (fields.array("stop_sequences") ?? []).flatMap((node) => (node.type === "string" ? [node.value] : []));
  const request = {
    dialect: "messages" as const,
    stream: fields.boolean("stream") ?? false,
    includeUsage: true,
    model: fields.string("model"),
    messages,
    tools,
    toolChoice: readToolChoice(fields),
    maxOutputTokens: fields.count("max_tokens"),
    sampling: readSampling(fields),
    stop,
    wantsLogprobs: false,
  };
  return { ...request, ignored: [...ignored, ...fields.unread()] };
}

function refuseUnsupported(fields: Fields): void {
  const format = fields.object("output_config")?.value("format") ?? fields.value("output_format");
  if (format !== null && format !== undefined) {
    throw unsupported("output_config.format", "output constrained to a schema cannot be asked of the policy");
  }
  if ((fields.array("mcp_servers") ?? []).length > 0)
    throw unsupported("mcp_servers", "servers are not called from here");
  if (fields.value("container") !== null) throw unsupported("container", "no code runs here");
}

function readToolChoice(fields: Fields): "auto" | "none" {
  const type = fields.object("tool_choice")?.requiredString("type") ?? "auto";
  if (type === "auto" || type === "none") return type;
  throw unsupported(
    "tool_choice",
    `only "auto" and "none" can be expressed by a chat template, not ${JSON.stringify(type)}`,
  );
}
