/** Tools of a Responses request: flat functions, namespaces of functions, and custom tools that take free text. */
import type { ToolDefinition } from "@tito/format";
import { type Fields, unsupported } from "../json/fields.js";
import { rawText } from "../json/raw-json.js";
import type { CallShape } from "./neutral.js";

/** What a custom tool looks like to a policy that only knows functions: one string. */
const CUSTOM_PARAMETERS = '{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}';

export interface ResponsesTools {
  tools: ToolDefinition[];
  callShapes: Map<string, CallShape>;
  ignored: string[];
}

/** The name under which the policy knows a tool of a namespace. */
export function namespacedName(namespace: string, name: string): string {
  return `${namespace}__${name}`;
}

/** @throws TitoError `unsupported` for tools that a server would have to run (web search and the like) or that need constrained decoding. */
export function readResponsesTools(entries: readonly Fields[]): ResponsesTools {
  const found: ResponsesTools = { tools: [], callShapes: new Map(), ignored: [] };
  for (const entry of entries) {
    const type = entry.requiredString("type");
    if (type === "function") {
      found.tools.push(readFunction(entry, null));
    } else if (type === "namespace") {
      readNamespace(entry, found);
    } else if (type === "custom") {
      readCustom(entry, found);
    } else {
      throw unsupported(
        entry.where,
        `a tool of type ${type} would have to run on the server; turn it off in the harness`,
      );
    }
  }
  return found;
}

function readFunction(entry: Fields, namespace: string | null): ToolDefinition {
  const name = entry.requiredName("name");
  const description = entry.string("description");
  const parameters = entry.value("parameters");
  return {
    name: namespace === null ? name : namespacedName(namespace, name),
    ...(description === null ? {} : { description }),
    ...(parameters === null ? {} : { parameters: rawText(parameters) }),
  };
}

function readNamespace(entry: Fields, found: ResponsesTools): void {
  const namespace = entry.requiredName("name");
  if (entry.string("description") !== null) found.ignored.push(entry.path("description"));
  for (const inner of entry.objects("tools")) {
    const type = inner.requiredString("type");
    if (type !== "function")
      throw unsupported(inner.where, `a tool of type ${type} inside a namespace cannot be offered as a function`);
    const tool = readFunction(inner, namespace);
    found.tools.push(tool);
    found.callShapes.set(tool.name, { kind: "function", name: inner.requiredString("name"), namespace });
  }
}

function readCustom(entry: Fields, found: ResponsesTools): void {
  const name = entry.requiredName("name");
  const format = entry.object("format")?.string("type") ?? "text";
  if (format !== "text")
    throw unsupported(entry.path("format"), `input constrained by a ${format} cannot be asked of the policy`);
  const description = entry.string("description");
  found.tools.push({ name, ...(description === null ? {} : { description }), parameters: CUSTOM_PARAMETERS });
  found.callShapes.set(name, { kind: "custom", name, namespace: null });
}
