/**
 * Ids of tool calls and results, completed: some engines give none, and some harnesses drop them, send them empty, or send two alike. What has no id is
 * matched by its place: the calls of an assistant message are answered in order by the results that follow it.
 */
import type { Message } from "@tito/format";

interface OpenCall {
  /** As the harness sent it; "" where it sent none. */
  sent: string;
  id: string;
  answered: boolean;
}

/** Messages in which every call has an id that no other call of its message has, and every result the id of its call. Unchanged ones are the same objects. */
export function completeCallIds(messages: readonly Message[]): Message[] {
  const known = new Set(messages.flatMap((message) => (message.tool_calls ?? []).map((call) => call.id)));
  const completed = [...messages];
  let open: OpenCall[] = [];
  let results: number[] = [];
  const settle = (): void => {
    answer(completed, results, open);
    results = [];
  };
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") results.push(place);
    if (message.role !== "assistant") continue;
    settle();
    open = openCalls(message, place, known);
    if (open.every((call) => call.id === call.sent)) continue;
    const calls = (message.tool_calls ?? []).map((call, index) => ({ ...call, id: open[index]!.id }));
    completed[place] = { ...message, tool_calls: calls };
  }
  settle();
  return completed;
}

function openCalls(message: Message, place: number, known: Set<string>): OpenCall[] {
  const seen = new Set<string>();
  return (message.tool_calls ?? []).map(({ id: sent }, index) => {
    let id = sent;
    // The same conversation gets the same ids each time it comes.
    for (let more = 0; id === "" || seen.has(id); more += 1) {
      const made = `call_${place}_${index}${more === 0 ? "" : `_${more}`}`;
      id = known.has(made) ? "" : made;
    }
    seen.add(id);
    known.add(id);
    return { sent, id, answered: false };
  });
}

/** Results that name a call first: what is left is matched in order. */
function answer(messages: Message[], results: readonly number[], open: readonly OpenCall[]): void {
  const byId = new Map<string, OpenCall[]>();
  for (const call of open.toReversed()) {
    const alike = byId.get(call.sent);
    if (alike === undefined) byId.set(call.sent, [call]);
    else alike.push(call);
  }
  const unnamed: number[] = [];
  const give = (place: number, call: OpenCall | undefined): void => {
    if (call === undefined) return;
    call.answered = true;
    const message = messages[place]!;
    if (message.tool_call_id !== call.id) messages[place] = { ...message, tool_call_id: call.id };
  };
  for (const place of results) {
    const sent = messages[place]!.tool_call_id ?? "";
    if (sent === "") unnamed.push(place);
    else give(place, byId.get(sent)?.pop());
  }
  const left = open.filter((call) => !call.answered);
  for (const [index, place] of unnamed.entries()) give(place, left[index]);
}
