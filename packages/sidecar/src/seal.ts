/** Sealing: a trajectory is closed for ever, and the answer carries its last chain head out. */
import type { AnchoredHead } from "@tito/format";
import type { Trajectory } from "./trajectory.js";

/** The answer to a seal. `complete` is false when anything observable is missing. */
export interface SealReport {
  schema: "tito.seal/v1";
  trajectory_id: string;
  status: string;
  turns: number;
  uncaptured: number;
  head: AnchoredHead;
  manifest_sha256: string;
}

export async function sealTrajectory(trajectory: Trajectory, reason: string, timeoutMs: number): Promise<SealReport> {
  const { head, manifest, manifest_sha256 } = await trajectory.seal(reason, timeoutMs);
  return {
    schema: "tito.seal/v1",
    trajectory_id: trajectory.id,
    status: manifest.status,
    turns: trajectory.turns,
    uncaptured: trajectory.uncaptured,
    head,
    manifest_sha256,
  };
}
