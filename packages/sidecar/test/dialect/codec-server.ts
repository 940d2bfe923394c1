/** A tiny HTTP server that plays what a codec writes: the codec is the part under test, the official SDK is the reader. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { TitoError } from "@tito/format";
import fc from "fast-check";
import type { DialectCodec, DialectError, NeutralRequest, ReplyEvent, Usage } from "../../src/dialect/neutral.js";

export interface Script {
  events: ReplyEvent[];
  /** Sent after the events, in place of the rest of the reply. */
  inStreamError?: DialectError;
  /** Answered before any byte of a reply. */
  httpError?: DialectError;
  /** A keepalive before each event, the first before the reply begins. */
  keepalives?: boolean;
}

export interface CodecServer extends AsyncDisposable {
  url: string;
  requests: NeutralRequest[];
  bodies: string[];
  attempts(): number;
}

/** Serves every POST with the same script. */
export async function serveCodec(codec: DialectCodec, script: Script): Promise<CodecServer> {
  const requests: NeutralRequest[] = [];
  const bodies: string[] = [];
  let attempts = 0;
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      attempts += 1;
      const body = Buffer.concat(chunks);
      bodies.push(body.toString("utf8"));
      const refuse = (error: DialectError) => {
        const reply = codec.error(error);
        outgoing.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
        outgoing.end(reply.body);
      };
      if (script.httpError !== undefined) return refuse(script.httpError);
      let request: NeutralRequest;
      try {
        request = codec.parse(body);
      } catch (error) {
        if (!TitoError.is(error)) throw error;
        const kind = error.code === "unsupported" ? "unsupported" : "bad_request";
        return refuse({ kind, message: error.message, retryable: false });
      }
      requests.push(request);
      if (!request.stream) {
        outgoing.writeHead(200, { "content-type": "application/json" });
        return outgoing.end(codec.reply(request, script.events));
      }
      const encoder = codec.stream(request);
      outgoing.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of script.events) {
        if (script.keepalives === true) outgoing.write(encoder.keepalive());
        for (const frame of encoder.encode(event)) outgoing.write(frame.text);
      }
      if (script.inStreamError !== undefined) outgoing.write(encoder.error(script.inStreamError));
      outgoing.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    bodies,
    attempts: () => attempts,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A whole answer before it is cut into deltas. */
export interface Answer {
  reasoning: string;
  content: string;
  calls: { id: string; name: string; arguments: string }[];
  length: boolean;
}

export const USAGE: Usage = { promptTokens: 90, completionTokens: 12, cachedTokens: 40, reasoningTokens: 3 };

/** The events of an answer, its texts cut where `cut` says. */
export function eventsOf(answer: Answer, cut: (text: string) => string[]): ReplyEvent[] {
  const reason = answer.length ? "length" : answer.calls.length > 0 ? "tool_calls" : "stop";
  return [
    { type: "start", id: "chatcmpl-1", createdS: 1_790_000_000, model: "policy" },
    ...cut(answer.reasoning).map((text): ReplyEvent => ({ type: "reasoning", text })),
    ...cut(answer.content).map((text): ReplyEvent => ({ type: "content", text })),
    ...answer.calls.flatMap((call, index): ReplyEvent[] => [
      { type: "tool_call", index, id: call.id, name: call.name },
      ...cut(call.arguments).map((text): ReplyEvent => ({ type: "arguments", index, text })),
    ]),
    { type: "finish", reason, usage: USAGE, stopSequence: null },
  ];
}

/** Cuts a text every `size` characters, never inside a surrogate pair. */
export function cutEvery(size: number): (text: string) => string[] {
  return (text) => {
    const characters = [...text];
    const pieces: string[] = [];
    for (let at = 0; at < characters.length; at += size) pieces.push(characters.slice(at, at + size).join(""));
    return pieces;
  };
}

const argumentText = fc
  .dictionary(fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }), fc.jsonValue({ maxDepth: 2 }), {
    maxKeys: 4,
  })
  .map((value) => JSON.stringify(value));

/** Answers with odd text, no text, reasoning or none, and up to three calls. */
export const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  reasoning: fc.string({ unit: "grapheme", maxLength: 20 }),
  content: fc.string({ unit: "grapheme", maxLength: 20 }),
  calls: fc
    .array(fc.record({ name: fc.constantFrom("bash", "read"), arguments: argumentText }), { maxLength: 3 })
    .map((calls) => calls.map((call, index) => ({ id: `call_${index}`, ...call }))),
  length: fc.boolean(),
});

/** Odd but legal: spacing, escapes, integer-like keys, a number beyond 2^53. */
export const ODD_ARGUMENTS = '{"command":  "echo \\u00e9", "10": 1e3, "2": 12345678901234567890 }';

/** All calls begin, then their arguments come in turns; within one call the pieces keep their order. */
export function interleaveArguments(events: readonly ReplyEvent[]): ReplyEvent[] {
  const queues = new Map<number, ReplyEvent[]>();
  for (const event of events) {
    if (event.type === "arguments") queues.set(event.index, [...(queues.get(event.index) ?? []), event]);
  }
  const turns: ReplyEvent[] = [];
  while ([...queues.values()].some((queue) => queue.length > 0)) {
    for (const queue of queues.values()) turns.push(...queue.splice(0, 1));
  }
  return [...events.filter((event) => event.type !== "arguments" && event.type !== "finish"), ...turns, events.at(-1)!];
}
