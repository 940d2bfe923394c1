/** Conversations that drift in a known way: every edit, on every kind of reply, at every place, with everything that can follow. */
import type { Message } from "@tito/format";
import { DriftModel, type Edit, type Need, pythonSpelled, type Tokenizing } from "./drift-model.js";

/** What the reply holds beside reasoning. */
export const REPLIES = ["call", "call_with_text", "two_calls", "text"] as const;
/** What the request holds behind the last reply (and its results, where it calls). */
export const SUFFIXES = ["nothing", "user", "two_users"] as const;

export interface DriftCase {
  edit: Edit;
  /** Kind of each reply, oldest first. */
  replies: readonly (typeof REPLIES)[number][];
  /** Which reply is edited. */
  place: number;
  suffix: (typeof SUFFIXES)[number];
  tokenizing: Tokenizing;
  /** The prompt ends inside a reasoning block. */
  opens: boolean;
  texts: boolean;
}

/** True when the edit is possible there. */
export function applies({ edit, replies, place, suffix, texts }: DriftCase): boolean {
  const kind = replies[place]!;
  const last = replies.at(-1)!;
  if (last === "text" && suffix === "nothing") return false;
  const holds: Record<Need, boolean> = {
    calls: kind !== "text",
    parallel: kind === "two_calls",
    content: kind === "text" || kind === "call_with_text",
    last: place === replies.length - 1,
    answered: place < replies.length - 1,
    user_follows: suffix !== "nothing" || replies.includes("text"),
  };
  return (edit.needs ?? []).every((need) => holds[need]) && (edit.texts_only !== true || texts);
}

/** The cause that the first drifting request is given: the next one where a reply was sampled oddly, else the last one. */
export function causeOf(drifted: DriftCase): string {
  const { edit, replies, place, suffix } = drifted;
  const model = new DriftModel(drifted.tokenizing, drifted.texts);
  const messages: Message[] = [
    { role: "system", content: "be brief" },
    { role: "user", content: "do the job" },
  ];
  const always = { ...edit.always, opens: drifted.opens };
  let edited = 0;
  let early: string | null = null;
  for (const [i, kind] of replies.entries()) {
    const reply = replyOf(kind, i, edit.python === true);
    const decision = model.ask([...messages], reply, always, i === place ? edit.sampling : {});
    if (i > place) early ??= decision.evidence.cause;
    if (i === place) edited = messages.length;
    messages.push(reply, ...resultsOf(reply));
    if (kind === "text" && i < replies.length - 1) messages.push({ role: "user", content: `go on ${i}` });
  }
  if (suffix !== "nothing") messages.push({ role: "user", content: "and now" });
  if (suffix === "two_users") messages.push({ role: "user", content: "more" });
  const returned = edit.messages?.(messages, edited) ?? messages;
  const decision = model.ask(returned, { role: "assistant", content: "end" }, { ...always, ...edit.printing });
  return early ?? decision.evidence.cause ?? decision.reason;
}

function replyOf(kind: DriftCase["replies"][number], index: number, python: boolean): Message {
  const args = { command: "listing", limit: 2 };
  const call = (name: string): NonNullable<Message["tool_calls"]>[number] => ({
    id: `${name}${index}`,
    name: "bash",
    arguments: python ? pythonSpelled(args) : JSON.stringify(args),
  });
  const reply: Message = {
    role: "assistant",
    content: kind === "text" || kind === "call_with_text" ? `Looking around, part ${index} ` : "",
    reasoning: ` I am wondering about part ${index} of it `,
  };
  if (kind !== "text") reply.tool_calls = kind === "two_calls" ? [call("a"), call("b")] : [call("a")];
  return reply;
}

function resultsOf(reply: Message): Message[] {
  return (reply.tool_calls ?? []).map((call) => ({
    role: "tool",
    tool_call_id: call.id,
    content: `a long result of ${call.id}`,
  }));
}
