/** Conversations that certification tries: seeded, varied in everything that a template or a tokenizer could trip over. */
import type { Message, ToolDefinition } from "@tito/format";
import type { Shape, TurnEnd } from "./shapes.js";

export interface Probe {
  history: Message[];
  reply: Message;
  end: TurnEnd;
  suffix: Message[];
  tools: ToolDefinition[];
}

const TEXTS = [
  "ok",
  "The file holds 3 lines.",
  "two\nlines",
  "é 中文 😀👩‍👩‍👧",
  '{"json": [1, 2.50]}',
  "a\n\n\nb",
  "x = 1  # <b>&amp;</b>",
  "    indented",
  "None",
  "ends with a dash -",
  "'quoted' \"twice\"",
  "한국어 العربية",
];
const ARGUMENTS = [
  '{"command": "ls -la"}',
  '{"command": "echo \\"é 中 😀\\""}',
  "{}",
  '{"command": "cat <<EOF\\nx\\nEOF", "timeout": 5}',
  '{"command": "true", "flags": ["a", {"b": null}], "deep": {"10": 1, "2": false}}',
];
const PARAMETERS = JSON.stringify({
  type: "object",
  properties: {
    command: { type: "string" },
    timeout: { type: "integer" },
    flags: { type: "array" },
    deep: { type: "object" },
  },
});
export const TOOLS: ToolDefinition[] = [
  { name: "bash", description: "Run a command", parameters: PARAMETERS },
  { name: "read_file", description: "Read a file", parameters: PARAMETERS },
];

/** Small seeded generator (mulberry32): the same conversations for the same seed everywhere. */
function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

interface Wanted {
  calls: number;
  users: number;
  end: TurnEnd;
  reasoning: "never" | "sometimes" | "always" | "as_formed";
}
const WANTED: Record<Shape, Wanted> = {
  tool_result: { calls: 1, users: 0, end: "stop", reasoning: "sometimes" },
  parallel_results: { calls: 2, users: 0, end: "stop", reasoning: "sometimes" },
  results_then_user: { calls: 1, users: 1, end: "stop", reasoning: "sometimes" },
  user_turn: { calls: 0, users: 1, end: "stop", reasoning: "never" },
  user_turn_after_reasoning: { calls: 0, users: 1, end: "stop", reasoning: "always" },
  user_turns: { calls: 0, users: 2, end: "stop", reasoning: "sometimes" },
  user_turn_after_length: { calls: 0, users: 1, end: "length", reasoning: "as_formed" },
  user_turn_after_stop_string: { calls: 0, users: 1, end: "stop_string", reasoning: "as_formed" },
};

/** What the family's turns can hold. */
export interface ProbeForm {
  reasoning: "never" | "optional" | "always";
  /** How history spells the reasoning of a turn without any, so that the template prints what the prompt ended with; absent: it has no such member. */
  empty_reasoning?: string;
  calls_max: number;
  content_with_calls: boolean;
  /** The template prints no argument whose value is null, so a policy cannot have sampled one. */
  leaves_out_null?: boolean;
}

const withoutReasoning = (form: ProbeForm): { reasoning?: string } =>
  form.empty_reasoning === undefined ? {} : { reasoning: form.empty_reasoning };

/** A parsed reply as history has to spell it for the family's template. */
export const inForm = (message: Message, form: ProbeForm): Message => ({ ...withoutReasoning(form), ...message });

/** Why no probe of the shape can be made for the family; null when one can. */
export function unprobeable(shape: Shape, form: ProbeForm): string | null {
  const wanted = WANTED[shape];
  if (wanted.calls > form.calls_max) return `the family's turns hold ${form.calls_max} calls at most`;
  if (wanted.reasoning === "always" && form.reasoning === "never") return "the family's turns hold no reasoning";
  if (wanted.reasoning === "never" && form.reasoning === "always") return "the family's turns always hold reasoning";
  return null;
}

/** Probe `index` of a shape. */
export function probeConversation(shape: Shape, form: ProbeForm, seed: number, index: number): Probe {
  const random = seeded(seed * 1000 + index);
  const pick = <T>(items: readonly T[]): T => items[random(items.length)]!;
  const wanted = WANTED[shape];
  let ids = 0;
  const think = (): { reasoning?: string } => {
    const some = wanted.reasoning === "always" || (wanted.reasoning === "sometimes" && random(2) === 0);
    const thinks = form.reasoning === "always" || (form.reasoning === "optional" && some);
    return thinks ? { reasoning: pick(TEXTS) } : withoutReasoning(form);
  };
  const calling = (count: number): Message => ({
    role: "assistant",
    content: random(2) === 0 || !form.content_with_calls ? "" : pick(TEXTS),
    ...think(),
    tool_calls: Array.from({ length: count }, () => ({
      id: `probe_${ids++}`,
      name: pick(TOOLS).name,
      arguments: form.leaves_out_null === true ? pick(ARGUMENTS).replace("null", '"c"') : pick(ARGUMENTS),
    })),
  });
  const results = (message: Message): Message[] =>
    (message.tool_calls ?? []).map((call) => ({
      role: "tool",
      tool_call_id: call.id,
      content: random(5) === 0 ? "" : pick(TEXTS),
    }));
  const history: Message[] = random(2) === 0 ? [{ role: "system", content: pick(TEXTS) }] : [];
  history.push({ role: "user", content: pick(TEXTS) });
  for (let loop = form.calls_max > 0 ? random(3) : 0; loop > 0; loop--) {
    const message = calling(wanted.calls > 1 ? 1 + random(2) : 1);
    history.push(message, ...results(message));
  }
  const reply =
    wanted.calls > 0 ? calling(wanted.calls) : { role: "assistant" as const, content: pick(TEXTS), ...think() };
  const users = Array.from({ length: wanted.users }, (): Message => ({ role: "user", content: pick(TEXTS) }));
  return {
    history,
    reply,
    end: wanted.end,
    suffix: [...results(reply), ...users],
    tools: wanted.calls > 0 || history.length > 2 ? TOOLS : [],
  };
}
