/** Messages request body → neutral request. */
import type { ToolDefinition } from "@tito/format";
import { Fields, unsupported } from "../json/fields.js";
import { parseJsonBody } from "../json/raw-json.js";
import { readConversation } from "./messages-content.js";
import { readMessagesTools } from "./messages-tools.js";
import type { NeutralRequest } from "./neutral.js";
import { anyCall, namedCall, type OutputDemand, responseFormat } from "./output-constraints.js";
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
  const { toolChoice, constraints } = readDemand(fields, tools);
  const stop = fields.strings("stop_sequences");
  const request = {
    dialect: "messages" as const,
    stream: fields.boolean("stream") ?? false,
    includeUsage: true,
    model: fields.string("model"),
    messages,
    tools,
    toolChoice,
    maxOutputTokens: fields.count("max_tokens"),
    sampling: readSampling(fields),
    stop,
    wantsLogprobs: false,
    ...(constraints.size > 0 ? { constraints } : {}),
  };
  return { ...request, ignored: [...ignored, ...fields.unread()] };
}

function refuseUnsupported(fields: Fields): void {
  if ((fields.array("mcp_servers") ?? []).length > 0)
    throw unsupported("mcp_servers", "servers are not called from here");
  if (fields.value("container") !== null) throw unsupported("container", "no code runs here");
}

function readDemand(fields: Fields, tools: readonly ToolDefinition[]): OutputDemand {
  const constraints = new Map<string, string>();
  const format = responseFormat(fields.object("output_config")?.object("format") ?? fields.object("output_format"));
  if (format !== null) constraints.set("response_format", format);
  const choice = fields.object("tool_choice");
  const type = choice?.requiredString("type") ?? "auto";
  switch (type) {
    case "auto":
    case "none":
      return { toolChoice: type, constraints };
    case "any":
      return { toolChoice: "auto", constraints: constraints.set("tool_choice", anyCall(tools)) };
    case "tool": {
      const call = namedCall(choice!.requiredString("name"), tools, "tool_choice.name");
      return { toolChoice: "auto", constraints: constraints.set("tool_choice", call) };
    }
    default:
      throw unsupported(
        "tool_choice",
        `a choice of type ${JSON.stringify(type)} cannot be expressed by a chat request`,
      );
  }
}
