/** Tells main, sub-agent, auxiliary and compaction calls apart by evidence. A lane changes no token and no decision on ids. */
import type { Lane, LaneEvidence, Message } from "@tito/format";
import { GENERIC_RULES, HARNESS_RULES } from "./harness-rules.js";
import { flatText } from "./message.js";
import type { HarnessRules, LaneCondition, LaneRule } from "./rules.js";

export interface LaneInput {
  /** A request header by its lower-case name. */
  header: (name: string) => string | undefined;
  path: string;
  messages: readonly Message[];
  /** How many tools the request offers. */
  tools: number;
  max_tokens: number | null;
  /** The lane of the call that sampled a tool call, by its id. */
  laneOfCall?: (toolCallId: string) => Lane | undefined;
  /** How the main lane's conversation begins, once there is one. */
  main?: Prologue | null;
}

/** The leading system text and the first user text of a conversation. */
export interface Prologue {
  system: string;
  first_user: string;
}

export interface LaneVerdict {
  lane: Lane;
  evidence: LaneEvidence;
}

/** The rules of the harness that sent a request: by its given name, else by its user agent; null when neither is known. */
export function detectHarness(name: string | null, header: LaneInput["header"]): HarnessRules | null {
  const named = HARNESS_RULES.find((rules) => rules.harness === name);
  if (named !== undefined) return named;
  const agent = header("user-agent") ?? "";
  return HARNESS_RULES.find((rules) => rules.user_agents.some((start) => agent.startsWith(start))) ?? null;
}

/**
 * Headers first, then the harness's named requests, then whose tool calls the history holds, then another prologue than the main lane's.
 * Named requests come before tool-call ids because a summary request repeats the main line's tool calls. Rules of a user (`own`) come first.
 */
export function classifyLane(
  input: LaneInput,
  rules: HarnessRules | null,
  own: readonly HarnessRules[] = [],
): LaneVerdict {
  return (
    laneByRules(input, [...own, ...(rules === null ? [] : [rules]), GENERIC_RULES]) ??
    byToolCalls(input) ??
    byPrologue(input, prologueOf(input.messages)) ??
    verdict("main", "default", "nothing says otherwise")
  );
}

/** What the first rule says that holds, of the sets in their order; null when none holds. */
export function laneByRules(input: LaneInput, sets: readonly HarnessRules[]): LaneVerdict | null {
  const said: Said = { prologue: prologueOf(input.messages), lastUser: lastUserText(input.messages) };
  for (const set of sets) {
    for (const rule of set.lanes) {
      if (!holds(rule.when, input, said)) continue;
      const detail = describe(rule.when, input);
      return { lane: laneOf(rule, input), evidence: { rule: `${set.harness}@${set.version}/${rule.name}`, detail } };
    }
  }
  return null;
}

function verdict(lane: Lane, rule: string, detail: string): LaneVerdict {
  return { lane, evidence: { rule: `generic@${GENERIC_RULES.version}/${rule}`, detail } };
}

function laneOf(rule: LaneRule, input: LaneInput): Lane {
  if (typeof rule.lane === "string") return rule.lane;
  if ("aux" in rule.lane) return `aux:${rule.lane.aux}`;
  return `sub:${input.header(rule.lane.sub_header) ?? "unnamed"}`;
}

/** The texts that conditions look at, put together once a request. */
interface Said {
  prologue: Prologue;
  lastUser: string;
}

function holds(when: LaneCondition, input: LaneInput, { prologue, lastUser }: Said): boolean {
  const header = when.header === undefined ? "" : input.header(when.header);
  return (
    (header?.includes(when.header_contains ?? "") ?? false) &&
    pathOf(input).endsWith(when.path_ends ?? "") &&
    prologue.system.startsWith(when.system_starts ?? "") &&
    prologue.system.includes(when.system_contains ?? "") &&
    prologue.first_user.startsWith(when.first_user_starts ?? "") &&
    lastUser.startsWith(when.last_user_starts ?? "") &&
    lastUser.includes(when.last_user_contains ?? "") &&
    (when.last_user_equals === undefined || lastUser === when.last_user_equals) &&
    (when.tools === undefined || (when.tools === "none") === (input.tools === 0)) &&
    (when.messages_at_most === undefined || input.messages.length <= when.messages_at_most) &&
    (when.max_tokens_at_most === undefined ||
      (input.max_tokens !== null && input.max_tokens <= when.max_tokens_at_most))
  );
}

function pathOf(input: LaneInput): string {
  return input.path.split("?")[0]!;
}

/** What the rule saw, in words: the condition and, for a header, its value. */
function describe(when: LaneCondition, input: LaneInput): string {
  const parts = Object.entries(when).map(([key, value]) =>
    key === "header" ? `${value}: ${input.header(String(value))}` : `${key} ${value}`,
  );
  return parts.join(", ").slice(0, 200);
}

/** The history's latest known tool call says whose conversation it is. */
function byToolCalls(input: LaneInput): LaneVerdict | null {
  if (input.laneOfCall === undefined) return null;
  for (let i = input.messages.length - 1; i >= 0; i--) {
    for (const call of input.messages[i]!.tool_calls ?? []) {
      const lane = input.laneOfCall(call.id);
      if (lane !== undefined && lane !== "compaction" && !lane.startsWith("aux:"))
        return verdict(lane, "tool_call_id", `call ${call.id} was sampled in this lane`);
    }
  }
  return null;
}

/** Another system text and another first user text than the main lane: a sub-agent, named by its prologue. */
function byPrologue(input: LaneInput, prologue: Prologue): LaneVerdict | null {
  const { main } = input;
  if (main === undefined || main === null) return null;
  if (prologue.system === main.system || prologue.first_user === main.first_user) return null;
  const id = shortHash(`${prologue.system}\u0000${prologue.first_user}`);
  return verdict(`sub:${id}`, "prologue", "other system and first user text than the main lane");
}

/** How a conversation begins: all leading system or developer text, and the first user text. */
export function prologueOf(messages: readonly Message[]): Prologue {
  const system: string[] = [];
  for (const message of messages) {
    if (message.role !== "system" && message.role !== "developer") break;
    system.push(flatText(message.content));
  }
  const user = messages.find((message) => message.role === "user");
  return { system: system.join("\n"), first_user: flatText(user?.content) };
}

function lastUserText(messages: readonly Message[]): string {
  return flatText(messages.findLast((message) => message.role === "user")?.content);
}

/** 32-bit FNV-1a over UTF-16 code units, as hex: a name, not a digest. */
function shortHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
