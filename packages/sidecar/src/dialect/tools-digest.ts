/** What a list of tools is known by. */
import { sha256, type ToolDefinition } from "@tito/format";

/** Several stops ask for the digest of the same request's tools, which are long. */
const toolsDigests = new WeakMap<readonly ToolDefinition[], Buffer>();

/** SHA-256 over the tools list, spelled as the harness spelled it. */
export function toolsDigest(tools: readonly ToolDefinition[]): Buffer {
  const known = toolsDigests.get(tools);
  if (known !== undefined) return known;
  const list = tools.map(({ name, description, parameters, strict }) => [
    name,
    description ?? null,
    parameters ?? null,
    ...(strict === undefined ? [] : [strict]),
  ]);
  const digest = sha256(JSON.stringify(list));
  toolsDigests.set(tools, digest);
  return digest;
}
