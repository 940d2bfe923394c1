/** The shape of the rule data that is kept per harness. Rules name things; no rule ever changes a token. */

/** One test of a request. All given keys must hold. Texts are compared from the start unless the key says otherwise. */
export interface LaneCondition {
  /** A request header (lower case) is there; with `header_contains`, and holds this text. */
  header?: string;
  header_contains?: string;
  path_ends?: string;
  system_starts?: string;
  system_contains?: string;
  first_user_starts?: string;
  last_user_starts?: string;
  last_user_contains?: string;
  /** The last message of any role but tool, joined text. */
  last_user_equals?: string;
  tools?: "none" | "some";
  max_tokens_at_most?: number;
  messages_at_most?: number;
}

/** Puts a request into a lane. `sub_header` takes the sub-agent's id from a header. */
export interface LaneRule {
  name: string;
  when: LaneCondition;
  lane: "main" | "compaction" | { aux: string } | { sub_header: string };
}

/** Text that a harness changes by itself from call to call: from `start` up to and including `end`. */
export interface VolatileText {
  name: string;
  start: string;
  end: string;
}

/** Everything that is known of one harness, as data. */
export interface HarnessRules {
  harness: string;
  /** Version of this data; goes into the evidence of what it decided. */
  version: string;
  /** Harness versions whose requests the facts were read from. */
  observed: string;
  /** Starts of the user-agent header. */
  user_agents: readonly string[];
  /** Tried in order, first match decides. Headers come before content. */
  lanes: readonly LaneRule[];
  /** Names that the harness echoes otherwise than the model wrote them. */
  renames: readonly { sampled: string; echoed: string }[];
  volatile: readonly VolatileText[];
  /** Texts that stand in the message which replaces a compacted history. */
  compaction_markers: readonly string[];
  /** Texts that take the place of an old tool result. */
  pruned_markers: readonly string[];
}

/** For a harness that is not known: nothing is tolerated, nothing is assumed. */
export const NO_RULES: HarnessRules = {
  harness: "unknown",
  version: "1",
  observed: "",
  user_agents: [],
  lanes: [],
  renames: [],
  volatile: [],
  compaction_markers: [],
  pruned_markers: [],
};

/** A text without what the harness changes by itself, and the names of the rules that took something away. */
export function withoutVolatile(text: string, rules: HarnessRules): { text: string; names: string[] } {
  let rest = text;
  const names: string[] = [];
  for (const rule of rules.volatile) {
    const before = rest;
    rest = removeSpans(rest, rule);
    if (rest !== before) names.push(rule.name);
  }
  return { text: rest, names };
}

function removeSpans(text: string, rule: VolatileText): string {
  let out = "";
  let from = 0;
  for (;;) {
    const start = text.indexOf(rule.start, from);
    const end = start < 0 ? -1 : text.indexOf(rule.end, start + rule.start.length);
    if (end < 0) return out + text.slice(from);
    out += text.slice(from, start);
    from = end + rule.end.length;
  }
}
