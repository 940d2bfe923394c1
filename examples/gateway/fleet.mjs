// A small fleet without recorders in its sandboxes: each rollout gets a trajectory of the gateway, is sealed when it ends, and is collected.
//   node fleet.mjs ENDPOINT_FILE OUT COLLECTED
// ENDPOINT_FILE: what `tito sidecar --gateway --endpoint-file` wrote. OUT: its --out. COLLECTED: gets the trajectories, and the rewards for `tito materialize`.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const [endpointFile, out, collected] = process.argv.slice(2);
const { openai_base_url: gateway, api_key: adminKey } = JSON.parse(readFileSync(endpointFile, "utf8"));

const TASKS = [
  { id: "sum", prompt: "What is 2 + 3?", answer: "5" },
  { id: "product", prompt: "What is 4 * 6?", answer: "24" },
];
const AGENT = fileURLToPath(new URL("agent.mjs", import.meta.url));
/** Rollouts of each task: the group that they are compared in. */
const SAMPLES = 2;

/** The key for one trajectory: whoever holds the admin key can compute it, and nothing has to be asked. The sandbox gets this one alone. */
const keyOf = (id) => `tito_${createHmac("sha256", adminKey).update(id).digest("base64url")}`;

/** The admin key stays here: it opens and seals. */
const asOwner = (path) =>
  fetch(`${gateway}${path}`, { method: "POST", headers: { authorization: `Bearer ${adminKey}` } });

async function rollout(task, sample) {
  const id = `${task.id}-${sample}`;
  // The first call would create it too; this way a wrong key or a full disk shows before a sandbox is started.
  const created = await asOwner(`/t/${id}`);
  if (created.status !== 201) throw new Error(`${id}: ${created.status} ${await created.text()}`);
  const answer = await runInSandbox(task, { OPENAI_BASE_URL: `${gateway}/t/${id}/v1`, OPENAI_API_KEY: keyOf(id) });
  const sealed = await asOwner(`/t/${id}/seal`);
  if (sealed.status !== 200) throw new Error(`${id}: ${sealed.status} ${await sealed.text()}`);
  const report = await sealed.json();
  collect(id, task, answer);
  return report;
}

/** Where a fleet starts a container. */
function runInSandbox(task, env) {
  const child = spawn(process.execPath, [AGENT, task.prompt], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once("close", (code) =>
      code === 0 ? resolve(text.trim()) : reject(new Error(`the agent ended with ${code}`)),
    );
  });
}

/** Sealed and complete: the directory may go wherever it is wanted. The gateway keeps its id closed. */
function collect(id, task, answer) {
  mkdirSync(collected, { recursive: true });
  renameSync(join(out, id), join(collected, id));
  const row = { trajectory_id: id, group_id: task.id, reward: answer === task.answer ? 1 : 0 };
  appendFileSync(join(collected, "rewards.jsonl"), `${JSON.stringify(row)}\n`);
}

const rollouts = TASKS.flatMap((task) => Array.from({ length: SAMPLES }, (_, index) => rollout(task, index + 1)));
for (const report of await Promise.all(rollouts)) {
  console.log(
    `${report.trajectory_id}: ${report.status}, ${report.turns} turns, head ${report.head.digest.slice(0, 12)}`,
  );
}
