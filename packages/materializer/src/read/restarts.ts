/** Does one trajectory hold the agent's work twice? Pure. */
import type { EvidenceTurn } from "./evidence.js";

type Opening = Pick<EvidenceTurn, "turn" | "lane" | "opens_again" | "delivery" | "tools_offered"> & {
  decision: Pick<EvidenceTurn["decision"], "reason">;
};

/**
 * Says that the main agent began its conversation again, in words; null when it did not. A conversation that follows a compaction is the same
 * one, a retry is the same call, and a call without the main agent's tools is another agent's.
 */
export function restartWarning(trajectoryId: string, turns: readonly Opening[]): string | null {
  const again: number[] = [];
  let first: Opening | null = null;
  let compacted = false;
  for (const turn of turns) {
    if (turn.lane === "compaction") compacted = true;
    if (turn.lane !== "main") continue;
    const begins = turn.opens_again && turn.tools_offered === first?.tools_offered;
    if (first !== null && begins && !compacted && turn.decision.reason !== "retry") again.push(turn.turn);
    if (turn.delivery === "delivered") first ??= turn;
    compacted = false;
  }
  if (again.length === 0) return null;
  const where = again.slice(0, 4).join(", ");
  return `trajectory ${trajectoryId} begins ${again.length + 1} conversations in the main lane (again at turn ${where}${again.length > 4 ? ", …" : ""}): the agent was started again, or a side call has no rule; all train as one rollout`;
}
