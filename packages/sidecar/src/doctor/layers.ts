/** Which layers of docs/threat-model.md hold here. Pure: what was found out is put together. */
import { type Finding, finding } from "./finding.js";

export interface LayerFacts {
  /** Exclusive files, refused links and kept modes; null when no directory could be probed. */
  namesHold: boolean | null;
  /** Is the engine on another machine? Null when no engine was named. */
  upstreamLocal: boolean | null;
  /** A descriptor of the parent gets the heads. */
  anchorFd: boolean;
  hmacKey: boolean;
  /** The key's file can be read by the agent. */
  hmacKeyExposed: boolean;
  agentSeparate: boolean;
}

/** In the order of the page. A layer that does not hold is a warning: nothing breaks, less is known afterwards. */
export function judgeLayers(facts: LayerFacts): Finding[] {
  return [accidents(facts), evident(), anchored(facts), keyed(facts), separate(facts), outside(facts)];
}

function accidents({ namesHold }: LayerFacts): Finding {
  if (namesHold === null) return finding("layer_accident_proof", "skipped", "no directory could be looked at");
  if (namesHold)
    return finding(
      "layer_accident_proof",
      "ok",
      "holds: a file that is removed, replaced or linked is noticed at the next turn",
    );
  return finding("layer_accident_proof", "warning", "does not hold in full: see names and directory");
}

function evident(): Finding {
  return finding("layer_evident", "ok", "holds: an edit that does not rewrite every witness is found by tito verify");
}

function anchored({ anchorFd, upstreamLocal }: LayerFacts): Finding {
  if (anchorFd)
    return finding(
      "layer_anchored",
      "ok",
      "holds: the heads go to the parent's descriptor; keep them outside for tito verify --anchor",
    );
  if (upstreamLocal === null) {
    return finding("layer_anchored", "skipped", "depends on the engine: --upstream URL, or --anchor-fd", null);
  }
  if (upstreamLocal) {
    return finding(
      "layer_anchored",
      "warning",
      "does not hold: the heads go to an engine on this machine",
      "read them on --anchor-fd from outside, or keep the answer of the seal there",
    );
  }
  return finding("layer_anchored", "ok", "holds as far as the engine's gateway keeps request headers (x-tito-head)");
}

function keyed({ hmacKey, hmacKeyExposed, agentSeparate }: LayerFacts): Finding {
  if (!hmacKey)
    return finding(
      "layer_keyed",
      "warning",
      "not in use",
      "--hmac-key-file: no turn can be forged, also before the next anchor",
    );
  if (hmacKeyExposed && !agentSeparate) {
    return finding(
      "layer_keyed",
      "warning",
      "does not hold: the agent can read the key's file",
      "remove the file once the recorder runs, or use --agent-user",
    );
  }
  return finding("layer_keyed", "ok", "holds for every record from before the recorder's memory was read");
}

function separate({ agentSeparate }: LayerFacts): Finding {
  if (agentSeparate) return finding("layer_separate_user", "ok", "holds: the agent's user was tried and kept out");
  return finding(
    "layer_separate_user",
    "warning",
    "does not hold: edits are evident, not prevented",
    "--agent-user NAME, started by root",
  );
}

function outside({ upstreamLocal }: LayerFacts): Finding {
  if (upstreamLocal === null) return finding("layer_outside", "skipped", "depends on the engine: --upstream URL");
  if (upstreamLocal) {
    return finding(
      "layer_outside",
      "warning",
      "does not hold: the engine, too, runs on this machine",
      "a gateway on another host, or an engine whose log can be compared",
    );
  }
  return finding(
    "layer_outside",
    "ok",
    "the engine's own log is out of reach: calls can be compared with it by request id",
  );
}
