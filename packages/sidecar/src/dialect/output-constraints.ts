/**
 * What a harness demands of the output's form, in the words of a chat request: a call that must be made, a schema that must be met. The engine
 * constrains its decoding by them, so that the log probabilities are not those of the policy alone; they are recorded with the turn, and masked later.
 */
import type { ToolDefinition } from "@tito/format";
import { TitoError } from "@tito/format";
import { type Fields, unsupported } from "../json/fields.js";
import { rawText } from "../json/raw-json.js";

export interface OutputDemand {
  toolChoice: "auto" | "none";
  /** Chat fields as JSON text, by name; empty when the output is free. */
  constraints: Map<string, string>;
}

/** Any of the tools must be called. @throws TitoError `bad_request` when none is offered. */
export function anyCall(tools: readonly ToolDefinition[]): string {
  if (tools.length === 0) throw new TitoError("bad_request", "tool_choice: a call is demanded and no tool is offered");
  return '"required"';
}

/** One tool must be called. @throws TitoError `bad_request` when it is not offered. */
export function namedCall(name: string, tools: readonly ToolDefinition[], where: string): string {
  if (!tools.some((tool) => tool.name === name))
    throw new TitoError("bad_request", `${where}: no tool is called ${JSON.stringify(name)}`);
  return JSON.stringify({ type: "function", function: { name } });
}

/** `response_format` of a chat request, from a format object whose members lie flat in it; null: plain text. @throws TitoError `unsupported`. */
export function responseFormat(format: Fields | null): string | null {
  const type = format?.string("type") ?? "text";
  if (format === null || type === "text") return null;
  if (type === "json_object") return '{"type":"json_object"}';
  if (type !== "json_schema")
    throw unsupported(format.path("type"), `output in the form of ${type} cannot be asked of the engine`);
  const schema = format.value("schema");
  if (schema === null) throw new TitoError("bad_request", `${format.path("schema")} is missing`);
  const members = [`"name":${JSON.stringify(format.string("name") ?? "output")}`, `"schema":${rawText(schema)}`];
  if (format.boolean("strict") === true) members.push('"strict":true');
  return `{"type":"json_schema","json_schema":{${members.join(",")}}}`;
}
