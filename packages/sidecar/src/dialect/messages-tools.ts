/** Tools of a Messages request. Deferred tools are not part of the prompt until a tool result refers to them. */
import type { ToolDefinition } from "@tito/format";
import { type Fields, unsupported } from "../json/fields.js";
import { rawText } from "../json/raw-json.js";

export interface MessagesTools {
  /** What the prompt offers. */
  tools: ToolDefinition[];
  /** Every tool by name, deferred ones too: the text that stands where a `tool_reference` block refers to it. */
  references: ReadonlyMap<string, string>;
}

/** @throws TitoError `unsupported` for tools that the API would have to define or run. */
export function readMessagesTools(entries: readonly Fields[]): MessagesTools {
  const tools: ToolDefinition[] = [];
  const references = new Map<string, string>();
  for (const entry of entries) {
    const type = entry.string("type") ?? "custom";
    if (type !== "custom")
      throw unsupported(entry.where, `a tool of type ${type} is defined by Anthropic's API and cannot be offered`);
    const name = entry.requiredName("name");
    const description = entry.string("description");
    const schema = entry.value("input_schema");
    const tool: ToolDefinition = {
      name,
      ...(description === null ? {} : { description }),
      ...(schema === null ? {} : { parameters: rawText(schema) }),
    };
    references.set(name, referenceText(tool));
    if (entry.boolean("defer_loading") !== true) tools.push(tool);
  }
  return { tools, references };
}

function referenceText(tool: ToolDefinition): string {
  const description = JSON.stringify(tool.description ?? "");
  return `{"name": ${JSON.stringify(tool.name)}, "description": ${description}, "parameters": ${tool.parameters ?? "{}"}}`;
}
