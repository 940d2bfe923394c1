/** The engine as a call sees it: where to send, what it can do, and what is known of its weights. */

import { anchorHeader } from "./anchor.js";
import type { SidecarConfig } from "./config.js";
import { type EngineProfile, probeEngine, readWeightVersion } from "./probe.js";
import { engineSource } from "./prompt/engine-source.js";
import type { PromptSource } from "./prompt/source.js";
import { openUpstream, type Upstream } from "./sample/upstream.js";
import type { Trajectory } from "./trajectory.js";

export interface Engine {
  config: SidecarConfig;
  upstream: Upstream;
  profile: EngineProfile;
  source: PromptSource;
  /** The version that the engine tells right now; null when it has no route for it. */
  weightVersion(): Promise<string | null>;
  /** Headers of our own on an upstream request: the last chain head, so that the engine's access log holds an anchor. */
  headers(trajectory: Trajectory): Record<string, string>;
}

/** @throws TitoError when the engine can not be used; see `probeEngine`. */
export async function openEngine(config: SidecarConfig): Promise<Engine> {
  const upstream = openUpstream(config.upstream, config.secrets.upstreamKey);
  try {
    const profile = await probeEngine(upstream, config);
    return {
      config,
      upstream,
      profile,
      source: engineSource(config, profile, upstream),
      weightVersion: async () => (profile.hasWeightInfo ? readWeightVersion(upstream).catch(() => null) : null),
      headers: (trajectory) => ({ "x-tito-head": anchorHeader(trajectory.writer.head()) }),
    };
  } catch (error) {
    upstream.close();
    throw error;
  }
}
