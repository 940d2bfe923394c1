// An agent loop with a branch: it asks, follows its answer up, goes back to the answer and follows it up in another way.
// Run by `tito run`; one trajectory with a shared prefix, several segments, and answers of different lengths.
const base = process.env.OPENAI_BASE_URL;
const [task = "Save the sum of 29 and 48."] = process.argv.slice(2);

async function ask(messages) {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "policy", messages, max_tokens: 48 }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()).choices[0].message;
}

const first = [{ role: "user", content: task }];
const answer = await ask(first);
const line = [...first, answer];
const second = await ask([...line, { role: "user", content: "Explain the answer." }]);
await ask([...line, { role: "user", content: "Explain the answer." }, second, { role: "user", content: "Go on." }]);
await ask([...line, { role: "user", content: "Is it right?" }]);
