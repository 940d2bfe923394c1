/** Reply events → the whole response as one JSON body. */
import { TitoError } from "@tito/format";
import type { NeutralRequest, ReplyEvent } from "./neutral.js";
import {
  itemJson,
  newCall,
  newItem,
  type OutputItem,
  type ResponseHead,
  responseId,
  responseJson,
} from "./responses-items.js";
import { responseKey } from "./responses-marker.js";

/** @throws TitoError `internal` when the events are not complete. */
export function responsesReply(request: NeutralRequest, events: readonly ReplyEvent[]): string {
  const start = events.find((event) => event.type === "start");
  const finish = events.find((event) => event.type === "finish");
  if (start === undefined || finish === undefined)
    throw new TitoError("internal", "a reply needs its start and finish events");
  const head: ResponseHead = { id: responseId(start.id), createdS: start.createdS, model: start.model };
  const items = collectItems(request, events, responseKey(head.id));
  const cut = finish.reason === "length";
  const output = items.map((item, index) =>
    itemJson(item, cut && index === items.length - 1 ? "incomplete" : "completed"),
  );
  const status = cut ? "incomplete" : "completed";
  return JSON.stringify(responseJson(head, status, { output, usage: finish.usage, finish: finish.reason }));
}

function collectItems(request: NeutralRequest, events: readonly ReplyEvent[], key: string): OutputItem[] {
  const items: OutputItem[] = [];
  const calls = new Map<number, OutputItem & { kind: "call" }>();
  for (const event of events) {
    if (event.type === "reasoning" || event.type === "content") {
      if (event.text === "") continue;
      const kind = event.type === "reasoning" ? "reasoning" : "message";
      let item = items.at(-1);
      if (item === undefined || item.kind !== kind) {
        item = newItem(kind, key, items.length);
        items.push(item);
      }
      if (item.kind !== "call") item.text += event.text;
    } else if (event.type === "tool_call") {
      const call = newCall(event, request.callShapes, key, items.length);
      calls.set(event.index, call);
      items.push(call);
    } else if (event.type === "arguments") {
      const call = calls.get(event.index);
      if (call === undefined)
        throw new TitoError("upstream_invalid", `arguments for call ${event.index}, which never began`);
      call.arguments += event.text;
    }
  }
  return items;
}
