/** The members of a JSON object as text, each spelled as it stands: arguments reach the harness as the model wrote them. */
import { jsonMembers } from "../template/lossless-json.js";
import type { ParsedCall } from "./output.js";

/** Reads `{"name": …, KEY: {…}}` for one of the keys; null when it is anything else. */
export function readJsonCall(text: string, keys: readonly string[]): ParsedCall | null {
  const members = jsonMembers(text.trim());
  if (members === null) return null;
  const nameText = members.get("name");
  const key = keys.find((candidate) => members.has(candidate));
  if (nameText === undefined || !nameText.startsWith('"') || key === undefined) return null;
  const args = members.get(key)!;
  return args.startsWith("{") ? { name: JSON.parse(nameText) as string, arguments: args } : null;
}

/** True when `text` is one JSON object. */
export const isJsonObject = (text: string): boolean => jsonMembers(text.trim()) !== null;
