/** Sealing: a trajectory is closed for ever, and the answer carries its last chain head out. */
import type { AnchoredHead, CaptureLoss } from "@tito/format";
import type { Trajectory } from "./trajectory.js";

/** The answer to a seal. `complete` is false when anything observable is missing. */
export interface SealReport {
  schema: "tito.seal/v1";
  trajectory_id: string;
  status: string;
  turns: number;
  uncaptured: number;
  /** Calls without token ids, refused ones too, and what the last of them was told. */
  calls_without_ids: number;
  last_without_ids: string | null;
  /** What replies lost of their ids and of what proves them; null where nothing was lost. */
  capture_loss: CaptureLoss | null;
  head: AnchoredHead;
  manifest_sha256: string;
}

/** How a trajectory is sealed: why, how long calls in flight are waited for, and what must have happened before it is complete. */
export interface SealOrder {
  reason: string;
  timeoutMs: number;
  idClosed: Promise<void>;
}

export async function sealTrajectory(trajectory: Trajectory, order: SealOrder): Promise<SealReport> {
  const { head, manifest, manifest_sha256 } = await trajectory.seal(order.reason, order.timeoutMs, order.idClosed);
  return {
    schema: "tito.seal/v1",
    trajectory_id: trajectory.id,
    status: manifest.status,
    turns: trajectory.turns,
    uncaptured: trajectory.uncaptured,
    calls_without_ids: trajectory.withoutIds,
    last_without_ids: trajectory.lastWithoutIds,
    capture_loss: trajectory.loss.loss,
    head,
    manifest_sha256,
  };
}
