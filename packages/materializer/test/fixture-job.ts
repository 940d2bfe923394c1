/** The trials of fixtures/trajectories: small, and each with something that a materializer must get right. */
import { join } from "node:path";
import type { Call } from "./trajectories.js";
import { harborResult, putFile, type TrajectorySpec, writeTrajectory } from "./written.js";

const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

/** Two calls with a tool result between them. */
const solved = (seed: number): Call[] => [
  { prompt: range(1, 8), sampled: range(100 + seed, 5), finish: "tool_calls" },
  { prompt: [...range(1, 8), ...range(100 + seed, 5), 30, 31], sampled: range(200 + seed, 4) },
];

/** Main agent, a sub-agent between its calls, a title call, and a compaction after which a new segment starts. */
const lanes: Call[] = [
  { prompt: range(1, 6), sampled: [110, 111, 112] },
  { prompt: range(60, 4), sampled: [61, 62], lane: "sub:reader" },
  { prompt: [90, 91], sampled: [92], lane: "aux:title" },
  { prompt: [...range(1, 6), 110, 111, 112, 40], sampled: [113, 114] },
  { prompt: [...range(60, 4), 61, 62, 64], sampled: [65], lane: "sub:reader" },
  { prompt: [...range(1, 6), 110, 111, 112, 40, 113, 114, 50], sampled: [120, 121, 122], lane: "compaction" },
  { prompt: [...range(1, 4), 120, 121, 122], sampled: [130], finish: "length" },
];

/** The harness re-renders the end of an answer: one sampled token is lost. Then it hangs up, retries, and never shows the last answer. */
const troubled: Call[] = [
  { prompt: range(1, 5), sampled: [140, 141, 142, 143] },
  { prompt: [...range(1, 5), 140, 141, 142, 44, 45], sampled: [150, 151], reason: "drift" },
  {
    prompt: [...range(1, 5), 140, 141, 142, 44, 45, 150, 151, 46],
    sampled: [160],
    defects: ["client_gone"],
    finish: "abort",
    delivery: "failed",
  },
  { prompt: [...range(1, 5), 140, 141, 142, 44, 45, 150, 151, 46], sampled: [170, 171], delivery: "failed" },
  { prompt: [...range(1, 5), 140, 141, 142, 44, 45, 150, 151, 46], sampled: [180, 181], delivery: "unknown" },
];

/** Values that only float64 holds, a value that is missing, mixed weight versions, a hot call with raw values. */
const numbers: Call[] = [
  { prompt: range(1, 4), sampled: [210, 211, 212], logprobs: [-0.1, -0.2, -0.3] },
  { prompt: [...range(1, 4), 210, 211, 212, 5], sampled: [213, 214], logprobs: [-0.5, null] },
  {
    prompt: [...range(1, 4), 210, 211, 212, 5, 213, 214, 6],
    sampled: [215, 216, 217],
    versions: [
      { version: "step-6", start: 0, end: 1 },
      { version: "step-9", start: 1, end: 3 },
    ],
  },
  { prompt: [70, 71], sampled: [218], sampling: { temperature: 0.5 } },
];

interface FixtureTrial {
  name: string;
  result: Parameters<typeof harborResult>[0];
  trajectories: TrajectorySpec[];
}

const TRIALS: FixtureTrial[] = [
  {
    name: "add__7hQ2",
    result: { task: "add", name: "add__7hQ2", rewards: { reward: 1 } },
    trajectories: [{ id: "add-1", calls: solved(0) }],
  },
  {
    name: "add__kT9x",
    result: { task: "add", name: "add__kT9x", rewards: { reward: 0 } },
    trajectories: [{ id: "add-2", calls: troubled }],
  },
  {
    name: "add__Vb3n",
    result: { task: "add", name: "add__Vb3n", exception: "EnvironmentStartTimeoutError" },
    trajectories: [],
  },
  {
    name: "plan__c0Lm",
    result: { task: "plan", name: "plan__c0Lm", rewards: { reward: 0.5, style: 0.25 } },
    trajectories: [
      { id: "plan-1", calls: lanes, metadata: { image: "plan:3" } },
      { id: "plan-1b", calls: solved(7), unsealed: true },
    ],
  },
  {
    name: "plan__Zz81",
    result: { task: "plan", name: "plan__Zz81", rewards: { reward: 1, style: 1 } },
    trajectories: [{ id: "plan-2", calls: numbers }],
  },
  {
    name: "plan__old1",
    result: { task: "plan", name: "plan__old1", rewards: { reward: 0 } },
    trajectories: [{ id: "plan-3", calls: solved(3), runId: "r3", trialId: "plan-x", attempt: 1 }],
  },
  {
    name: "plan__new2",
    result: { task: "plan", name: "plan__new2", rewards: { reward: 1 } },
    trajectories: [{ id: "plan-4", calls: solved(4), runId: "r3", trialId: "plan-x", attempt: 2 }],
  },
];

/** Writes the job into `out`. The bytes hold random boot ids: what is committed is read by tests and not made again. */
export async function writeFixtureJob(out: string): Promise<void> {
  putFile(join(out, "result.json"), { n_total_trials: TRIALS.length, stats: {} });
  for (const trial of TRIALS) {
    const dir = join(out, trial.name);
    putFile(join(dir, "result.json"), harborResult(trial.result));
    putFile(join(dir, "verifier", "test-stdout.txt"), `${trial.name}: done\n`);
    putFile(join(dir, "artifacts", "manifest.json"), { files: [] });
    for (const trajectory of trial.trajectories) await writeTrajectory(join(dir, "agent", "tito"), trajectory);
  }
}

/** Policies of the committed outputs. */
export const GOLDEN_POLICIES: Readonly<Record<string, string>> = {
  default: "",
  "split-turn": "build: {split: turn}\ncredit: {weight: token}",
  realign: "build: {realign_max_lost_tokens: 2}",
  strict:
    "select: {lanes: {sub_agent: mask, compaction: mask}, length: mask, logprob_missing: token, max_version_age: 2}\nbuild: {max_seq_len: 14}\ncredit: {rule: rloo}",
  lenient:
    "select: {undelivered: train, delivery_unknown: train, retry_orphan: train, logprob_not_behaviour: train, lanes: {auxiliary: train}}\nreward: reward + 0.5 * coalesce(style, 0)\ncredit: {rule: batch-baseline}",
};
