/** Evidence of a trajectory whose calls the real continuity engine placed, without a disk between. */
import { commit, createState, decide, setDelivery } from "@tito/continuity";
import type { EvidenceSegment, TrajectoryEvidence } from "../src/read/evidence.js";
import { type Call, evidenceOf, turnOf } from "./trajectories.js";

export function evidenceByEngine(id: string, calls: readonly Call[], startMs = 0): TrajectoryEvidence {
  const state = createState();
  const segments = new Map<number, EvidenceSegment>();
  const turns = calls.map((call, index) => {
    const call_id = `call-${index}`;
    const turn = {
      call_id,
      prompt_ids: Int32Array.from(call.prompt),
      sampled_ids: Int32Array.from(call.sampled),
      checkpointable: (call.defects ?? []).length === 0,
      lane: call.lane ?? ("main" as const),
      messages: [{ role: "user" as const, content: `prompt ${call.prompt.join(" ")}` }],
      reply: { role: "assistant" as const, content: `reply ${call.sampled.join(" ")}` },
      tools_sha256: "00",
      renderer_contract: "engine:00",
      retry_of: call.retryOf === undefined ? null : `call-${call.retryOf}`,
      harness: null,
      arrived_after: index,
    };
    const decision = decide(state, turn);
    commit(state, turn, decision, index + 1);
    const delivery = call.delivery ?? "delivered";
    if (delivery !== "unknown") setDelivery(state, call_id, delivery);
    const { segment, prompt_keep, kind, reason } = decision;
    const parent = decision.kind === "append" ? null : decision.parent;
    const opened = kind !== "append";
    const match = decision.evidence.match_tokens;
    const evidence = turnOf({ ...call, reason }, index, { segment, parent, opened, prompt_keep, kind, match });
    if (opened) segments.set(segment, { segment, parent, turns: [] });
    segments.get(segment)!.turns.push(evidence);
    return { ...evidence, finished_ms: startMs + index };
  });
  const list = [...segments.values()];
  for (const segment of list) segment.turns = segment.turns.map(({ turn }) => turns[turn]!);
  return { ...evidenceOf([]), trajectory_id: id, path: id, segments: list, turns };
}
