/** The engine as a call sees it: where to send, what it can do, who renders for it, and what is known of its weights. */

import { type LogprobMode, TitoError } from "@tito/format";
import type { ModelFacts } from "@tito/renderer";
import type { SidecarConfig } from "../config/config.js";
import type { Log } from "../config/log.js";
import { type EngineProfile, probeEngine } from "../engine-adapter/probe.js";
import { lowest } from "../sample/sampling.js";
import { StreamTrust } from "../sample/stream-trust.js";
import { openUpstream, type Upstream } from "../sample/upstream.js";
import { isPlaceholder, namedVersion } from "../sample/weight-version.js";
import { anchorHeader } from "../trajectory/anchor.js";
import type { Trajectory } from "../trajectory/trajectory.js";
import { engineSource } from "./engine-source.js";
import { lateSystemProbe } from "./late-system.js";
import { type OpenedRenderer, openRenderer } from "./open-renderer.js";
import { refuseMismatch, renderDifference } from "./render-check.js";
import { rendererSource } from "./renderer-source.js";
import type { PromptSource } from "./source.js";

export interface Engine {
  config: SidecarConfig;
  upstream: Upstream;
  profile: EngineProfile;
  source: PromptSource;
  /** Whether it is asked to stream: its answers may tell that it had better not be. */
  streams: StreamTrust;
  /** Longest prompt and answer together: the engine's window, or less where the user says so. Null: nobody says. */
  contextTokens: number | null;
  /** What the renderer bundle tells of the model; null with the engine's own rendering. */
  model: ModelFacts | null;
  /** What the log probabilities of a call with this sampling are. */
  logprobMode(sampling: Readonly<Record<string, unknown>>): LogprobMode;
  /** The template takes a system message behind the first other message. */
  takesLateSystem(): Promise<boolean>;
  /** The version that the engine tells right now; null when it has no route for it. */
  weightVersion(): Promise<string | null>;
  /** Headers of our own on an upstream request: the last chain head, so that the engine's access log holds an anchor. */
  headers(trajectory: Trajectory): Record<string, string>;
  close(): void;
}

/** @throws TitoError when the engine or the renderer bundle can not be used; see `probeEngine`, `openRenderer` and `renderDifference`. */
export async function openEngine(config: SidecarConfig, log: Log): Promise<Engine> {
  const upstream = openUpstream(config.upstream, config.secrets.upstreamKey);
  const opened = config.renderer === "engine" ? null : await openRenderer(config, log);
  const close = (): void => {
    upstream.close();
    void opened?.renderer.close();
  };
  try {
    const profile = await probeEngine(upstream, config, opened?.renderer ?? null);
    const { adapter } = profile;
    const tellsVersion = profile.weightVersion !== null;
    tellVersion(profile.weightVersion, config.weightVersion, log);
    const streams = new StreamTrust(profile.streamsIds ? null : adapter.canStream ? "probe_lost_ids" : "never_streams");
    return {
      config,
      upstream,
      profile,
      contextTokens: lowest(config.maxContextTokens, profile.contextTokens),
      streams,
      model: opened?.renderer.model ?? null,
      source:
        opened === null
          ? engineSource(config, { ...profile, streams }, upstream)
          : await checkedSource({ config, upstream, profile, streams, log }, opened),
      logprobMode: (sampling) => adapter.logprobModeOf?.(profile.logprobMode, sampling) ?? profile.logprobMode,
      takesLateSystem: lateSystemProbe({ upstream, model: config.model, adapter }, opened?.renderer ?? null),
      weightVersion: async () =>
        tellsVersion
          ? namedVersion(await adapter.weightVersion(upstream).catch(() => null), config.weightVersion)
          : null,
      headers: (trajectory) => ({
        "x-tito-head": anchorHeader(trajectory.writer.head()),
        ...adapter.headers(trajectory.id),
      }),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Which of two names for the weights holds is said once. */
function tellVersion(engine: string | null, given: string | null, log: Log): void {
  if (engine === null || given === null || engine === given) return;
  if (isPlaceholder(engine)) log("info", "weight_version_given", { given, engine });
  else log("warn", "weight_version_overruled", { given, engine, detail: "the engine names its weights itself" });
}

/** The renderer source, once the engine agrees with the bundle. */
async function checkedSource(
  parts: { config: SidecarConfig; upstream: Upstream; profile: EngineProfile; streams: StreamTrust; log: Log },
  { renderer, incremental }: OpenedRenderer,
): Promise<PromptSource> {
  const { config, upstream, profile, streams, log } = parts;
  const difference = await renderDifference({ upstream, model: config.model, adapter: profile.adapter }, renderer);
  if (difference !== null) {
    if (!config.allowRenderMismatch) refuseMismatch(difference);
    log("warn", "render_mismatch", { detail: difference });
  }
  const contextTokensMax = lowest(config.maxContextTokens, profile.contextTokens);
  if (contextTokensMax === null) {
    throw new TitoError(
      "usage",
      "the engine does not tell how long its context is, and --max-context-tokens is missing",
      {
        hint: "give --max-context-tokens",
      },
    );
  }
  const { adapter } = profile;
  return rendererSource(config, { adapter, streams, contextTokensMax }, renderer, incremental);
}
