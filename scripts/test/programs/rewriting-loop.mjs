/**
 * A harness on the official client that writes its history anew: arguments go through its own JSON library, reasoning is left out.
 * It calls tools until the policy ends.
 */
import OpenAI from "openai";

const CALLS_MAX = 8;
const client = new OpenAI();
const tools = [
  {
    type: "function",
    function: {
      name: "bash",
      description: "Runs a command.",
      parameters: { type: "object", properties: { command: { type: "string" }, timeout: { type: "number" } } },
    },
  },
];
const messages = [{ role: "user", content: "step 0." }];

for (let call = 1; call <= CALLS_MAX; call++) {
  const reply = await client.chat.completions.create({ model: "policy", messages, tools });
  const { content, tool_calls: calls } = reply.choices[0].message;
  if (calls === undefined || calls.length === 0) break;
  messages.push({
    role: "assistant",
    content: content ?? "",
    tool_calls: calls.map(({ id, type, function: { name, arguments: text } }) => ({
      id,
      type,
      function: { name, arguments: JSON.stringify(JSON.parse(text)) },
    })),
  });
  for (const { id } of calls) messages.push({ role: "tool", tool_call_id: id, content: `step ${call}.` });
}
