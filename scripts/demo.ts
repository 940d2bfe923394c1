/** `npm run demo`: real Pi solves small tasks through the sidecar against the embedded engine; the segment files become training samples. */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { rendererFlags } from "./demo/bundle.js";
import { runDemo } from "./demo/demo.js";
import { readRuns } from "./demo/score.js";
import { summarize } from "./demo/summary.js";
import { GRADED_TASKS } from "./demo/tasks.js";

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    seed: { type: "string", default: "1" },
    rollouts: { type: "string", default: "4" },
    renderer: { type: "boolean", default: false },
    incremental: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log("npm run demo -- [--rollouts N] [--seed N] [--out DIR] [--renderer] [--incremental]");
  console.log("  --renderer      the sidecar renders, by a renderer bundle of the engine's model, and sends ids");
  console.log("  --incremental   the same, and prompts are built from checkpoint and suffix by a certified junction");
  process.exit(0);
}

const startedMs = Date.now();
const seconds = () => `${((Date.now() - startedMs) / 1000).toFixed(1)} s`;
const out = values.out === undefined ? mkdtempSync(join(tmpdir(), "tito-demo-")) : resolve(values.out);
mkdirSync(out, { recursive: true });

const runFlags = values.renderer || values.incremental ? await rendererFlags(out, values.incremental) : [];
console.log(`Pi (unmodified) → tito sidecar → embedded engine. Everything is kept in ${out}\n`);
const result = await runDemo({
  out,
  tasks: GRADED_TASKS,
  rolloutsPerTask: Number(values.rollouts),
  seed: Number(values.seed),
  parallel: 2,
  runFlags,
  onRollout: ({ plan, reward, answer, exitCode }) => {
    const verdict =
      reward === 1
        ? "solved"
        : `not solved: ${answer === null ? "no answer file" : `answer ${JSON.stringify(answer)}, not ${plan.task.expected.text}`}`;
    const exit = exitCode === 0 ? "" : ` (exit code ${exitCode})`;
    console.log(
      `  ${seconds().padStart(7)}  rollout ${String(plan.rollout + 1).padStart(2)}  ${plan.task.prompt.padEnd(56)} ${verdict}${exit}`,
    );
  },
  onMaterialize: () => console.log("\ntito materialize trials/ --out samples.jsonl\n"),
});

console.log(result.table);
console.log(summarize(readRuns(result.samplesFile)));
const { fidelity } = result;
console.log(
  `log probabilities, recorded against recomputed by the engine from the materialized tokens: ${fidelity.tokens} tokens, correlation ${fidelity.correlation?.toFixed(6) ?? "not defined"}, largest difference ${fidelity.maxDifference.toExponential(1)}`,
);
const here = (path: string) => (relative(process.cwd(), path).startsWith("..") ? path : relative(process.cwd(), path));
console.log(`
Done in ${seconds()}. Look around:
  npx tito inspect ${here(result.trialsDir)}
  head -c 2000 ${here(result.samplesFile)}`);
