/** Trajectories made by hand or at random: calls with exact ids go in, evidence with segments comes out. */
import { createHash } from "node:crypto";
import type { Message, SharedPrefix, ToolDefinition, VersionSpan } from "@tito/format";
import type { Delivery, EvidenceSegment, EvidenceTurn, TrajectoryEvidence } from "../src/read/evidence.js";
import { NEUTRAL_SAMPLING } from "../src/recipe/sampling-settings.js";

/** One call, with what a test wants to say about it. */
export interface Call {
  prompt: number[];
  sampled: number[];
  logprobs?: (number | null)[] | null;
  delivery?: Delivery;
  lane?: EvidenceTurn["lane"];
  finish?: EvidenceTurn["finish_reason"];
  defects?: string[];
  malformed?: boolean;
  /** Beside the neutral values; undefined: nobody states it. */
  sampling?: Record<string, unknown>;
  usage?: EvidenceTurn["usage"];
  mode?: EvidenceTurn["logprob_mode"];
  versions?: VersionSpan[];
  reason?: string;
  message?: Message;
  /** Of the request; default: one user message made of the prompt's ids. */
  messages?: Message[];
  /** Headers and body path that the request came with. */
  headers?: Record<string, string>;
  /** Of the decision: a comparison with a full rendering. */
  shadow?: { full_tokens: number; match_tokens: number };
  tools?: ToolDefinition[];
  damage?: string;
  seam?: number;
  /** The harness repeats this earlier call, with evidence. */
  retryOf?: number;
}

/** What the recorder wrote for a call: where it decided to put it. A plain search over all earlier lines stands in for the engine. */
export interface Placed {
  segment: number;
  parent: SharedPrefix | null;
  opened: boolean;
  prompt_keep: number;
  kind: "append" | "branch" | "new_segment";
  match: number;
}

export function digestOf(ids: readonly number[]): Uint8Array {
  return createHash("sha256")
    .update(new Uint8Array(Int32Array.from(ids).buffer))
    .digest();
}

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i += 1;
  return i;
}

/** The lines and checkpoints of a trajectory so far. A segment can be appended to while its last turn is a checkpoint. */
class Recorder {
  private readonly lines: number[][] = [];
  private readonly checkpoints: { segment: number; length: number }[] = [];
  private readonly open: boolean[] = [];

  place(call: Call): Placed {
    const matches = this.lines.map((line) => commonPrefix(line, call.prompt));
    const match = Math.max(0, ...matches);
    const winner = this.checkpoints
      .filter((point) => point.length <= matches[point.segment]!)
      .reduce<{ segment: number; length: number } | null>(
        (best, p) => (best && best.length > p.length ? best : p),
        null,
      );
    if (winner && this.open[winner.segment] && this.lines[winner.segment]!.length === winner.length) {
      const { segment, length } = winner;
      return { segment, parent: null, opened: false, prompt_keep: length, kind: "append", match };
    }
    const parent = match > 0 ? { segment: matches.lastIndexOf(match), tokens: match } : null;
    const kind = winner ? "branch" : "new_segment";
    return { segment: this.lines.length, parent, opened: true, prompt_keep: match, kind, match };
  }

  record(call: Call, placed: Placed, checkpointable: boolean): void {
    this.lines[placed.segment] = [...call.prompt, ...call.sampled];
    this.open[placed.segment] = checkpointable;
    if (checkpointable) this.checkpoints.push({ segment: placed.segment, length: this.lines[placed.segment]!.length });
  }
}

/** Evidence of a trajectory in which these calls were made one after the other. */
export function evidenceOf(calls: readonly Call[], overrides: Partial<TrajectoryEvidence> = {}): TrajectoryEvidence {
  const recorder = new Recorder();
  const segments: EvidenceSegment[] = [];
  const turns = calls.map((call, index) => {
    const placed = recorder.place(call);
    const checkpointable = (call.defects ?? []).length === 0 && call.sampled.length > 0;
    const turn = turnOf(call, index, placed);
    if (placed.opened) segments.push({ segment: placed.segment, parent: placed.parent, turns: [] });
    segments[placed.segment]!.turns.push(turn);
    recorder.record(call, placed, checkpointable);
    return turn;
  });
  return {
    trajectory_id: "t1",
    path: "t1",
    identity: { run_id: null, group_id: null, trial_id: null, attempt: 1, metadata: new Map() },
    segments,
    turns,
    incomplete: [],
    uncaptured: new Map(),
    last_uncaptured: null,
    ended_ms: 1000 + calls.length,
    dangling_calls: 0,
    lost_calls: 0,
    volatile: [],
    sealed: true,
    imported: false,
    engine: { kind: "vllm", version: "0.30.0", model: "m" },
    prompt_modes: ["full_history"],
    models: [],
    renderer_contracts: ["engine:00"],
    lines: null,
    tampered: null,
    ...overrides,
  };
}

export function turnOf(call: Call, index: number, placed: Placed): EvidenceTurn {
  const logprobs =
    call.logprobs === null
      ? null
      : Float32Array.from(call.logprobs ?? call.sampled.map((id) => -((id * 37) % 64) / 64), (v) => v ?? Number.NaN);
  return {
    turn: index,
    call_id: `call-${index}`,
    commit: index + 1,
    segment: placed.segment,
    file: `segments/${String(placed.segment).padStart(6, "0")}.seg`,
    offset: index * 1000,
    bytes: 1000,
    lane: call.lane ?? "main",
    request: { messages: 1, max_tokens: null, prologue: { system: "", first_user: "" } },
    spliced: false,
    finish_reason: call.finish ?? "stop",
    engine: "vllm 0.30.0 m",
    defects: call.defects ?? [],
    damage: call.damage ?? null,
    delivery: call.delivery ?? "delivered",
    malformed: call.malformed ?? false,
    sampling: { ...NEUTRAL_SAMPLING, ...call.sampling },
    logprob_mode: call.mode ?? "raw",
    weight_versions: call.versions ?? [{ version: "7", start: 0, end: call.sampled.length }],
    decision: {
      kind: placed.kind,
      reason: call.reason ?? (placed.kind === "append" ? "extends_tip" : "drift"),
      evidence: {
        match_tokens: placed.match,
        against_tokens: placed.match,
        expected_id: null,
        actual_id: null,
        kept_sampled: 0,
        cause: null,
        cause_detail: null,
      },
    },
    prompt_keep: placed.prompt_keep,
    prompt_suffix: Int32Array.from(call.prompt.slice(placed.prompt_keep)),
    prompt_sha256: digestOf(call.prompt),
    seam_tokens: call.seam ?? 0,
    sampled_ids: Int32Array.from(call.sampled),
    logprobs,
    message: call.message ?? { role: "assistant", content: "" },
    opens_again: false,
    tools_offered: (call.tools ?? []).length > 0,
    usage: call.usage ?? {
      prompt_tokens: call.prompt.length,
      completion_tokens: call.sampled.length,
      cached_tokens: null,
    },
    finished_ms: 1000 + index,
  };
}
