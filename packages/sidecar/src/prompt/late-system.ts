/**
 * System messages behind the first other message (Claude Code sends one). Where the template takes them they stay what they are; many templates refuse
 * them, and then each is a user message inside the mark by which these harnesses tell the model the same kind of thing.
 */

import { flatText } from "@tito/continuity";
import type { Message } from "@tito/format";
import type { Renderer } from "@tito/renderer";
import type { NeutralRequest } from "../dialect/neutral.js";
import type { EngineAdapter } from "../engine-adapter/adapter.js";
import { readProbe } from "../engine-adapter/probe-form.js";
import type { Upstream } from "../sample/upstream.js";

const PLAIN = { messages: [{ role: "user", content: "tito probe" }] };
const LATE = { messages: [...PLAIN.messages, { role: "system", content: "tito probe" }] };

/** Whether the template takes a late system message. Asked once, when the first one comes; by routes that sample nothing. */
export function lateSystemProbe(
  parts: { upstream: Upstream; model: string; adapter: Pick<EngineAdapter, "tokenizeChat"> },
  renderer: Pick<Renderer, "render"> | null,
): () => Promise<boolean> {
  let asked: Promise<boolean> | null = null;
  return () => {
    asked ??= renderer === null ? engineTakes(parts) : rendererTakes(renderer);
    return asked;
  };
}

async function engineTakes({ upstream, model, adapter }: Parameters<typeof lateSystemProbe>[0]): Promise<boolean> {
  if ((await adapter.tokenizeChat(upstream, model, LATE)) !== null) return true;
  // An engine without the route says nothing about its template.
  return (await adapter.tokenizeChat(upstream, model, PLAIN)) === null;
}

function rendererTakes(renderer: Pick<Renderer, "render">): Promise<boolean> {
  const { messages, tools } = readProbe(LATE);
  return renderer.render(messages, tools).then(
    () => true,
    () => false,
  );
}

/** The request as the template can take it. Chat requests are the harness's own, and are passed on as they are. */
export async function fitLateSystem(request: NeutralRequest, takes: () => Promise<boolean>): Promise<NeutralRequest> {
  const { dialect, messages } = request;
  const first = messages.findIndex((message) => message.role !== "system");
  const isLate = (message: Message, index: number): boolean => first >= 0 && index > first && message.role === "system";
  if (dialect === "chat" || !messages.some(isLate) || (await takes())) return request;
  return {
    ...request,
    messages: messages.map((message, index) => (isLate(message, index) ? asReminder(message) : message)),
  };
}

function asReminder(message: Message): Message {
  return { role: "user", content: `<system-reminder>\n${flatText(message.content)}\n</system-reminder>` };
}
