/** Tools as gpt-oss reads them: TypeScript types in a namespace. Follows the vendor's harmony library, line by line of output. */
import { PyFloat } from "@huggingface/jinja";
import type { ToolDefinition } from "@tito/format";
import { type JsonValue, tryLosslessJson } from "../template/lossless-json.js";

type Schema = Map<string, JsonValue>;

const textOf = (schema: Schema, key: string): string | null => {
  const value = schema.get(key);
  return typeof value === "string" ? value : null;
};
const listOf = (schema: Schema, key: string): JsonValue[] | null => {
  const value = schema.get(key);
  return Array.isArray(value) ? value : null;
};
const asSchema = (value: JsonValue | undefined): Schema => (value instanceof Map ? value : new Map());

/** Compact JSON, as the library prints defaults that are not text. */
function compactJson(value: JsonValue): string {
  if (value instanceof PyFloat) {
    const whole = Number.isInteger(value.value) && Math.abs(value.value) < 1e16;
    return whole ? value.value.toFixed(1) : String(value.value).replace("e+", "e");
  }
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(compactJson).join(",")}]`;
  if (value instanceof Map)
    return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}:${compactJson(item)}`).join(",")}}`;
  return JSON.stringify(value);
}

/** `default: …` of a schema, or null. Text is quoted unless the schema is an enumeration and `plainEnums` holds. */
function defaultNote(schema: Schema, plainEnums: boolean): string | null {
  const value = schema.get("default");
  if (value === undefined) return null;
  if (typeof value !== "string") return `default: ${compactJson(value)}`;
  const isEnum = (listOf(schema, "enum")?.length ?? 0) > 0;
  if (!isEnum) return `default: "${value}"`;
  return plainEnums ? `default: ${value}` : `default: ${JSON.stringify(value)}`;
}

function withNull(schema: Schema, type: string): string {
  return schema.get("nullable") === true && !type.includes("null") ? `${type} | null` : type;
}

function unionType(variants: readonly JsonValue[], indent: string): string {
  const lines = variants.map((item) => {
    const variant = asSchema(item);
    const notes = [textOf(variant, "description"), defaultNote(variant, false)].filter((note) => note !== null);
    const type = withNull(variant, typeOf(variant, `${indent}   `));
    return `\n${indent} | ${type}${notes.length > 0 ? ` // ${notes.join(" ")}` : ""}`;
  });
  return lines.join("");
}

function typeOf(schema: Schema, indent: string): string {
  const oneOf = listOf(schema, "oneOf");
  if (oneOf !== null) return unionType(oneOf, indent);
  const types = (listOf(schema, "type") ?? []).filter((type) => typeof type === "string");
  if (types.length > 0) return types.map((type) => (type === "integer" ? "number" : type)).join(" | ");
  switch (schema.get("type")) {
    case "object":
      return objectType(schema, indent);
    case "string":
      return stringType(schema);
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return schema.has("items") ? `${typeOf(asSchema(schema.get("items")), indent)}[]` : "Array<any>";
    default:
      return "any";
  }
}

function stringType(schema: Schema): string {
  const texts = (listOf(schema, "enum") ?? []).filter((item) => typeof item === "string");
  return texts.length > 0 ? texts.map((text) => `"${text}"`).join(" | ") : "string";
}

function objectType(schema: Schema, indent: string): string {
  const description = textOf(schema, "description");
  const required = new Set(listOf(schema, "required") ?? []);
  const properties = [...asSchema(schema.get("properties"))].map(([key, value]) => {
    const property = asSchema(value);
    const name = `${key}${required.has(key) ? "" : "?"}`;
    return propertyNotes(property, indent) + propertyText(name, property, indent);
  });
  return `${description === null ? "" : `${indent}// ${description}\n`}{\n${properties.join("")}${indent}}`;
}

/** Comments above a property: title, description, examples. */
function propertyNotes(property: Schema, indent: string): string {
  const lines: string[] = [];
  const title = textOf(property, "title");
  const description = textOf(property, "description");
  if (title !== null) lines.push(`${indent}// ${title}`, `${indent}//`);
  if (description !== null && !property.has("oneOf")) lines.push(`${indent}// ${description}`);
  const examples = listOf(property, "examples") ?? [];
  if (examples.length > 0) {
    lines.push(`${indent}// Examples:`);
    for (const example of examples) if (typeof example === "string") lines.push(`${indent}// - "${example}"`);
  }
  return lines.map((line) => `${line}\n`).join("");
}

function propertyText(name: string, property: Schema, indent: string): string {
  const oneOf = listOf(property, "oneOf");
  if (oneOf !== null) return unionProperty(name, property, oneOf, indent);
  const type = withNull(property, typeOf(property, `${indent}    `));
  const note = property.has("oneOf") ? null : defaultNote(property, true);
  return `${indent}${name}: ${type},${note === null ? "" : ` // ${note}`}\n`;
}

/** A property of one of several types: its own comments, then one line per type with that type's comments behind it. */
function unionProperty(name: string, property: Schema, variants: readonly JsonValue[], indent: string): string {
  const own = textOf(property, "description");
  const first = variants.length > 0 ? textOf(asSchema(variants[0]), "description") : null;
  const above = own !== null && own !== first;
  const note = defaultNote(property, true);
  let text = above ? `${indent}// ${own}\n` : "";
  if (note !== null) text += `${indent}// ${note}\n`;
  text += `${indent}${name}:\n`;
  variants.forEach((item, i) => {
    const variant = asSchema(item);
    const notes: string[] = [];
    const description = textOf(variant, "description");
    if (description !== null && description !== own && !(i === 0 && above)) notes.push(description);
    const byDefault = defaultNote(variant, true);
    if (byDefault !== null) notes.push(byDefault);
    const type = withNull(variant, typeOf(variant, `${indent}   `));
    text += `${indent} | ${type}${notes.length > 0 ? ` // ${notes.join(" ")}` : ""}\n`;
  });
  return `${text}${indent},\n`;
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/));

/** The `# Tools` section of the developer message. */
export function toolsSection(tools: readonly ToolDefinition[]): string {
  const lines = ["## functions\n", "namespace functions {\n"];
  for (const tool of tools) {
    for (const line of linesOf(tool.description ?? "")) lines.push(`// ${line}`);
    const schema = tool.parameters === undefined ? undefined : tryLosslessJson(tool.parameters);
    const parameters = schema === undefined ? "" : `_: ${typeOf(asSchema(schema), "")}`;
    lines.push(`type ${tool.name} = (${parameters}) => any;\n`);
  }
  lines.push("} // namespace functions");
  return `# Tools\n\n${lines.join("\n")}`;
}
