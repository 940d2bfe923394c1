/** One question in each dialect, by plain fetch, so that nothing interprets the answer. */
import type { Started } from "./harness.js";

export const DIALECTS = ["chat", "responses", "messages"] as const;
export type TestedDialect = (typeof DIALECTS)[number];

/** Each dialect, streamed and not. */
export const CALLS = DIALECTS.flatMap((dialect) => [false, true].map((stream) => [dialect, stream] as const));

const PARAMETERS = { type: "object", properties: { command: { type: "string" } } };

/** Request bodies: one user message, and one tool where `tools` is set. */
const BODIES: Record<TestedDialect, (text: string, tools: boolean) => Record<string, unknown>> = {
  chat: (text, tools) => ({
    messages: [{ role: "user", content: text }],
    ...(tools ? { tools: [{ type: "function", function: { name: "bash", parameters: PARAMETERS } }] } : {}),
  }),
  responses: (text, tools) => ({
    input: text,
    ...(tools ? { tools: [{ type: "function", name: "bash", parameters: PARAMETERS, strict: false }] } : {}),
  }),
  messages: (text, tools) => ({
    max_tokens: 500,
    messages: [{ role: "user", content: text }],
    ...(tools ? { tools: [{ name: "bash", input_schema: PARAMETERS }] } : {}),
  }),
};

const PATHS: Record<TestedDialect, string> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
};

export function askIn(
  dialect: TestedDialect,
  started: Pick<Started, "url" | "key">,
  { text = "hello", stream = false, tools = false }: { text?: string; stream?: boolean; tools?: boolean } = {},
): Promise<Response> {
  return fetch(`${started.url}${PATHS[dialect]}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${started.key}` },
    body: JSON.stringify({ model: "policy", stream, ...BODIES[dialect](text, tools) }),
  });
}
