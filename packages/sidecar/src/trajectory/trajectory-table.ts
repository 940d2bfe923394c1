/** The trajectories of this process: one, or, as a gateway, as many as come. A wrong key and an unknown id look the same from outside. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Disk, TitoError } from "@tito/format";
import type { ModelFacts } from "@tito/renderer";
import type { SidecarConfig } from "../config/config.js";
import type { Log } from "../config/log.js";
import { keyDigest, keyMatches, trajectoryKey } from "../gate/gate.js";
import { SealedIds } from "./sealed-ids.js";
import { Trajectory } from "./trajectory.js";

export interface TableOptions {
  config: SidecarConfig;
  model: ModelFacts | null;
  writerVersion: string;
  hmacKey: Uint8Array | null;
  disk: Disk;
  onAnchor(line: string): void;
  log: Log;
}

export class TrajectoryTable {
  /** Those that are open now. */
  readonly opened = new Set<Trajectory>();
  private readonly open = new Map<string, Promise<Trajectory>>();
  private readonly adminDigest: Buffer | null;
  private readonly ownerDigest: Buffer | null;
  /** A gateway's; null for the one trajectory of a sidecar, which ends with it. */
  private readonly sealedIds: SealedIds | null;
  /** No new trajectory is created any more. */
  closing = false;

  constructor(private readonly options: TableOptions) {
    const { gateway, secrets } = options.config;
    this.adminDigest = gateway && secrets.apiKey !== null ? keyDigest(secrets.apiKey) : null;
    this.sealedIds = gateway ? SealedIds.read(options.config.out) : null;
    this.ownerDigest = secrets.ownerKey === null ? null : keyDigest(secrets.ownerKey);
  }

  /** Creates a trajectory under a key of its own. */
  async create(trajectoryId: string, apiKey: string): Promise<Trajectory> {
    const known = this.open.get(trajectoryId);
    if (known !== undefined) return known;
    if (this.closing) throw new TitoError("trajectory_sealed", "the sidecar is shutting down");
    const opening = Trajectory.open({ ...this.options, trajectoryId, apiKey }).catch((error: unknown) => {
      throw this.adminDigest === null ? error : sealedElsewhere(error, trajectoryId);
    });
    this.open.set(trajectoryId, opening);
    opening.then(
      (trajectory) => this.opened.add(trajectory),
      () => this.open.delete(trajectoryId),
    );
    return opening;
  }

  /** The trajectory that a harness may use with this key; a gateway creates it. @throws TitoError `unauthorized`. */
  async enter(trajectoryId: string, key: string | null): Promise<Trajectory> {
    const trajectory = await this.open.get(trajectoryId);
    const { adminDigest } = this;
    if (trajectory !== undefined) {
      if (keyMatches(key, trajectory.keyDigest) || (adminDigest !== null && keyMatches(key, adminDigest)))
        return trajectory;
    } else if (adminDigest !== null) {
      const own = trajectoryKey(this.options.config.secrets.apiKey!, trajectoryId);
      const admitted = [keyMatches(key, adminDigest), keyMatches(key, keyDigest(own))];
      if (admitted.includes(true)) {
        if (this.sealedIds?.has(trajectoryId) === true) throw sealed(trajectoryId);
        this.sealedIds?.checkRoom();
        return this.create(trajectoryId, own);
      }
    }
    throw unauthorized();
  }

  /** The trajectory that the owner may seal or create. @throws TitoError `unauthorized`. */
  async enterAsOwner(trajectoryId: string, key: string | null, create: boolean): Promise<Trajectory> {
    const admitted = [this.adminDigest, this.ownerDigest].map((digest) => digest !== null && keyMatches(key, digest));
    if (!admitted.includes(true)) throw unauthorized();
    const trajectory = await this.open.get(trajectoryId);
    if (trajectory !== undefined) return trajectory;
    const there = existsSync(join(this.options.config.out, trajectoryId));
    // One whose seal began in a process that died is still to be sealed: its directory is there.
    if ((create || !there) && this.sealedIds?.has(trajectoryId) === true) throw sealed(trajectoryId);
    if (create) this.sealedIds?.checkRoom();
    // A seal reaches what an earlier process left too, and says of a sealed one that it is.
    if (!(create || there) || this.adminDigest === null) throw new TitoError("not_found", "no such trajectory");
    return this.create(trajectoryId, trajectoryKey(this.options.config.secrets.apiKey!, trajectoryId));
  }

  /** Closes an id for ever; resolves when that is durable, as far as the disk lets it be. */
  async closeId(trajectoryId: string): Promise<void> {
    try {
      await this.sealedIds?.close(trajectoryId);
    } catch (error) {
      this.options.log("error", "sealed_id_not_written", { trajectory: trajectoryId, detail: String(error) });
    }
  }

  /** All that are open; failed openings are not among them. */
  async all(): Promise<Trajectory[]> {
    const settled = await Promise.allSettled(this.open.values());
    return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  }

  /** Forgets a sealed trajectory: its memory is freed, its id stays closed. */
  forget(trajectory: Trajectory): void {
    this.opened.delete(trajectory);
    if (this.adminDigest !== null) this.open.delete(trajectory.id);
  }
}

/** Whoever asks over the network is not told where the gateway keeps its files. */
function sealedElsewhere(error: unknown, trajectoryId: string): unknown {
  if (!TitoError.is(error) || error.code !== "trajectory_sealed") return error;
  return sealed(trajectoryId);
}

function sealed(trajectoryId: string): TitoError {
  return new TitoError("trajectory_sealed", `trajectory ${trajectoryId} is sealed`, {
    hint: "an id is never opened again: start another trajectory",
  });
}

function unauthorized(): TitoError {
  return new TitoError("unauthorized", "wrong or missing key", { hint: "use the api_key of the endpoint file" });
}
