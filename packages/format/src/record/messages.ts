/**
 * The neutral message: what every dialect is read into and written from.
 * It is the shape of OpenAI chat messages, reduced to what a policy can see, plus the reasoning text.
 */

/** One part of a message's content. Anything that is not text is kept only as its type: nothing but text can be trained on. */
export type ContentPart = { type: "text"; text: string } | { type: "other"; kind: string };

/** A call of a tool. `arguments` is the JSON text exactly as it was written by the model or by the harness. */
export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export type Role = "system" | "developer" | "user" | "assistant" | "tool";

/**
 * A message as the harness spelled it. Absent and null content are kept apart from "", because templates can see the difference.
 * `reasoning` is the thinking text under whichever key it came.
 */
export interface Message {
  role: Role;
  content?: string | ContentPart[] | null;
  reasoning?: string;
  tool_calls?: ToolCall[];
  /** Of a tool message: which call it answers. */
  tool_call_id?: string;
  name?: string;
}

/** A tool as offered to the policy. `parameters` is the JSON Schema as text, spelled as the harness spelled it. */
export interface ToolDefinition {
  name: string;
  description?: string;
  parameters?: string;
  /** As the harness gave it: templates that print a tool whole show it to the policy. */
  strict?: boolean;
}
