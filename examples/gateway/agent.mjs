// Stands for what runs in a sandbox: any harness that takes OPENAI_BASE_URL and OPENAI_API_KEY. It knows nothing of a recorder.
const { OPENAI_BASE_URL, OPENAI_API_KEY } = process.env;
const [task] = process.argv.slice(2);

const messages = [{ role: "user", content: task }];
for (const next of ["Are you sure? Answer with the number alone.", null]) {
  const response = await fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "policy", messages, max_tokens: 64 }),
  });
  // 410: the trajectory was sealed meanwhile. Nothing is tried again (x-should-retry: false).
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const { content } = (await response.json()).choices[0].message;
  messages.push({ role: "assistant", content });
  if (next !== null) messages.push({ role: "user", content: next });
}
console.log(messages.at(-1).content);
