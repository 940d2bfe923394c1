/** Trajectories on disk, decided by the real engine and written by the real writer. */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { commit, createState, decide, setDelivery } from "@tito/continuity";
import {
  createTrajectoryWriter,
  type Message,
  promptDigest,
  type TrajectoryWriter,
  type TurnRecord,
} from "@tito/format";
import { NEUTRAL_SAMPLING } from "../src/recipe/sampling-settings.js";
import type { Call } from "./trajectories.js";

export interface TrajectorySpec {
  id: string;
  calls: readonly Call[];
  runId?: string;
  groupId?: string;
  trialId?: string;
  attempt?: number;
  metadata?: Record<string, string>;
  /** Time of the first boot; later records follow by milliseconds. */
  startMs?: number;
  /** Do not seal: as after a kill. */
  unsealed?: boolean;
  /** By call number: ids whose digest is recorded instead of the prompt's. */
  sha256Of?: Record<number, number[]>;
  /** Records that the journal gets after the calls. */
  after?: (writer: TrajectoryWriter) => Promise<void> | void;
}

/** Messages that a call's prompt stands for: alternating, so that the engine has something to compare. */
function messagesOf(call: Call): Message[] {
  if (call.messages !== undefined) return call.messages;
  return [
    { role: "user", content: `prompt of ${call.prompt.length} ids starting ${call.prompt.slice(0, 4).join(" ")}` },
  ];
}

const NO_TOOLS = createHash("sha256").update("[]").digest();

/** Writes a trajectory into `out`/`id` as a sidecar would. Times are fixed, so that only random ids differ between two writes. */
export async function writeTrajectory(out: string, spec: TrajectorySpec): Promise<string> {
  let clock = spec.startMs ?? 1_700_000_000_000;
  const writer = await createTrajectoryWriter({
    out,
    trajectoryId: spec.id,
    runId: spec.runId ?? null,
    groupId: spec.groupId ?? null,
    trialId: spec.trialId ?? null,
    attempt: spec.attempt ?? 1,
    metadata: spec.metadata ?? {},
    configJson: "{}",
    writerVersion: "test",
    durability: "write",
    now: () => clock++,
  });
  const state = createState();
  for (const [index, call] of spec.calls.entries()) {
    const call_id = `call-${index}`;
    const reply: Message = call.message ?? { role: "assistant", content: `reply ${call.sampled.join(" ")}` };
    const prompt_ids = Int32Array.from(call.prompt);
    const sampled_ids = Int32Array.from(call.sampled);
    const turn = {
      call_id,
      prompt_ids,
      sampled_ids,
      checkpointable: (call.defects ?? []).length === 0,
      lane: call.lane ?? ("main" as const),
      messages: messagesOf(call),
      reply,
      tools_sha256: "00",
      renderer_contract: "engine:00",
      retry_of: null,
      harness: null,
      arrived_after: index,
    };
    const decision = decide(state, turn);
    commit(state, turn, decision, index + 1);
    if (call.headers !== undefined) {
      const path = "/v1/chat/completions";
      writer.writeIntent({
        call_id,
        dialect: "chat",
        path,
        headers: call.headers,
        body: Buffer.from("{}"),
        received_ms: clock,
      });
    }
    const record = recordOf(call, { call_id, reply, decision, prompt_ids, sampled_ids, finished_ms: clock });
    const place =
      decision.kind === "append"
        ? { segment: decision.segment }
        : { open: { segment: decision.segment, parent: decision.parent, continues: decision.continues } };
    const other = spec.sha256Of?.[index];
    if (other) record.prompt_sha256 = promptDigest(Int32Array.from(other));
    await writer.commitTurn({ ...place, turn: record });
    const delivery = call.delivery ?? "delivered";
    if (delivery !== "unknown") {
      writer.writeDelivery({ call_id, outcome: delivery, bytes: 10, status: 200, detail: null, at_ms: clock });
      setDelivery(state, call_id, delivery);
    }
  }
  await spec.after?.(writer);
  if (spec.unsealed) writer.abandon();
  else await writer.seal({ reason: "done" });
  return join(out, spec.id);
}

function recordOf(
  call: Call,
  known: {
    call_id: string;
    reply: Message;
    decision: ReturnType<typeof decide>;
    prompt_ids: Int32Array;
    sampled_ids: Int32Array;
    finished_ms: number;
  },
): TurnRecord {
  const { decision, prompt_ids, sampled_ids } = known;
  const values = call.logprobs === null ? null : (call.logprobs ?? call.sampled.map((id) => -((id * 37) % 64) / 64));
  const gaps = (values ?? []).flatMap((value, index) => (value === null ? [{ index, was: "null" }] : []));
  const wide = (values ?? []).some((value) => value !== null && Math.fround(value) !== value);
  const floats = (values ?? []).map((value) => value ?? Number.NaN);
  const seam_ids = prompt_ids.slice(decision.prompt_keep, decision.prompt_keep + (call.seam ?? 0));
  return {
    call_id: known.call_id,
    lane: call.lane ?? "main",
    lane_evidence: { rule: "test", detail: "" },
    dialect: "chat",
    stream: "none",
    messages_keep: 0,
    messages_new: messagesOf(call),
    tools: call.tools ?? null,
    tools_sha256: call.tools ? createHash("sha256").update(JSON.stringify(call.tools)).digest() : NO_TOOLS,
    sampling: { ...NEUTRAL_SAMPLING, ...call.sampling },
    logprob_mode: call.mode ?? "raw",
    prompt_mode: call.seam ? "incremental" : "full_history",
    prompt_keep: decision.prompt_keep,
    prompt_suffix: prompt_ids.slice(decision.prompt_keep),
    prompt_sha256: promptDigest(prompt_ids),
    sampled_ids,
    logprobs: values === null ? null : wide ? Float64Array.from(floats) : Float32Array.from(floats),
    logprob_gaps: gaps,
    finish_reason: call.finish ?? "stop",
    stop_reason: null,
    defects: call.defects ?? [],
    usage: call.usage ?? {
      prompt_tokens: call.prompt.length,
      completion_tokens: call.sampled.length,
      cached_tokens: null,
    },
    weight_versions: call.versions ?? [{ version: "7", start: 0, end: call.sampled.length }],
    engine: { kind: "vllm", version: "0.30.0", model: "tiny" },
    renderer_contract: "engine:00",
    decision: {
      kind: decision.kind,
      reason: decision.reason,
      evidence: { ...decision.evidence, ...(call.shadow === undefined ? {} : { shadow: call.shadow }) },
    },
    junction: call.seam ? { kind: "test", seam_ids, certificate: "test" } : null,
    message: known.reply,
    malformed: call.malformed ?? false,
    special_text_escaped: false,
    upstream_request_id: null,
    times: {
      received_ms: known.finished_ms,
      sent_ms: known.finished_ms,
      first_token_ms: null,
      finished_ms: known.finished_ms,
    },
  };
}

/** Writes text or JSON into a file, making its directories. */
export function putFile(path: string, content: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}

/** What Harbor writes into a trial's `result.json`, as far as it is used. */
export function harborResult(trial: {
  task: string;
  name: string;
  rewards?: object;
  exception?: string;
  verified?: boolean;
}) {
  const started = { started_at: "2026-11-01T10:00:00Z", finished_at: "2026-11-01T10:05:00Z" };
  return {
    id: "00000000-0000-0000-0000-000000000000",
    task_name: trial.task,
    trial_name: trial.name,
    trial_uri: "file:///jobs/j",
    task_id: { path: `tasks/${trial.task}` },
    source: "suite",
    task_checksum: "00",
    config: { environment: { type: "docker" } },
    agent_info: { name: "pi", version: "1" },
    verifier_result: trial.rewards ? { rewards: trial.rewards } : null,
    exception_info: trial.exception
      ? {
          exception_type: trial.exception,
          exception_message: "it failed",
          exception_traceback: "",
          occurred_at: "2026-11-01T10:05:00Z",
        }
      : null,
    agent_execution: started,
    verifier: trial.verified === false ? null : started,
  };
}
