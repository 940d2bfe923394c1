/**
 * A harness of thirty lines on the official client, without streaming: offers the demo's tools, runs them, and writes the answer file.
 * Arguments: the task's prompt.
 */
import { writeFileSync } from "node:fs";
import { DEMO_TOOLS, SYSTEM_PROMPT } from "@tito/reference-engine";
import OpenAI from "openai";

const CALLS_MAX = 6;
const client = new OpenAI();
const messages = [
  {
    role: "system",
    content: `${SYSTEM_PROMPT}\nCurrent date: 2026-11-30\nCurrent working directory: /tmp/tito-000000/00`,
  },
  { role: "user", content: process.argv[2] },
];

function runTool(name, text) {
  const args = JSON.parse(text);
  if (name === "calc") {
    const [, left, sign, right] = /^(\d+)([+-])(\d+)$/.exec(args.expression) ?? [];
    return left === undefined
      ? "error"
      : String(sign === "+" ? Number(left) + Number(right) : Number(left) - Number(right));
  }
  writeFileSync("answer.txt", args.text);
  return "saved";
}

for (let call = 0; call < CALLS_MAX; call++) {
  const reply = await client.chat.completions.create({
    model: "policy",
    messages,
    tools: DEMO_TOOLS,
    max_tokens: 96,
    stream: false,
  });
  const { message } = reply.choices[0];
  messages.push(message);
  if (message.tool_calls === undefined || message.tool_calls.length === 0) break;
  for (const { id, function: called } of message.tool_calls) {
    let content = "error";
    try {
      content = runTool(called.name, called.arguments);
    } catch {
      // What the model sampled is no call of these tools: it is told so.
    }
    messages.push({ role: "tool", tool_call_id: id, content });
  }
}
