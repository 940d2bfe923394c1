import { jsonTokens } from "../json/tokens.js";

/** The body of one `<tool_call>` block. `arguments` is the JSON text exactly as it was sampled. */
export interface ParsedCall {
  name: string;
  arguments: string;
}

/** Reads `{"name": …, "arguments": …}`; null when it is not that. */
export function parseToolCall(body: string): ParsedCall | null {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const name: unknown = Object.entries(value).find(([key]) => key === "name")?.[1];
  const raw = memberText(body, "arguments");
  return typeof name === "string" && name !== "" && raw !== null ? { name, arguments: raw } : null;
}

/** The text of a member of a JSON object that is known to be valid; of the last one, as JSON.parse takes it, where the key is repeated. */
function memberText(json: string, wanted: string): string | null {
  let depth = 0;
  let key: string | null = null;
  let valueAt = 0;
  let found: string | null = null;
  for (const { text, start } of jsonTokens(json)) {
    const endsMember = depth === 1 && (text === "," || text === "}");
    if (endsMember && key === wanted) found = json.slice(valueAt, start).trim();
    if (endsMember) key = null;
    else if (depth === 1 && text === ":") valueAt = start + 1;
    else if (depth === 1 && key === null && text.startsWith('"')) key = String(JSON.parse(text));
    if (text === "{" || text === "[") depth++;
    if (text === "}" || text === "]") depth--;
  }
  return found;
}
