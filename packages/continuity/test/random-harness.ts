/** A random harness: conversations that grow, fork, retry, drift, compact and crash, as real ones do. Seeded; equal seeds give equal trees. */
import type { Message } from "@tito/format";
import type { EngineTurn } from "../src/index.js";
import { promptTokens, sampledTokens, Vocabulary } from "./toy-model.js";

/** Small and fast 32-bit generator (mulberry32). */
export class Random {
  constructor(private state: number) {}

  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  chance(p: number): boolean {
    return this.next() < p;
  }
}

/** Where a conversation stands: what its next request would repeat. */
interface Place {
  call_id: string | null;
  messages: Message[];
  lane: EngineTurn["lane"];
  tools: string;
  contract: string;
}

/** A step of a tree: a turn, or something that happens between turns. */
export type Step =
  | { kind: "turn"; turn: EngineTurn; delivered: boolean }
  | { kind: "close"; of: string }
  | { kind: "restart" };

const WORDS = ["red", "green", "blue", "one", "two", "three", "ok", "list", "read", "write"];

/** One vocabulary for a whole run keeps ids small and equal texts equal. */
export class RandomHarness {
  private readonly vocabulary = new Vocabulary();

  /** The steps of one tree. */
  tree(seed: number): Step[] {
    const random = new Random(seed);
    const steps: Step[] = [];
    const places: Place[] = [];
    const turns: { turn: EngineTurn; request: Place }[] = [];
    const wanted = 3 + random.below(12);
    const ask = (request: Place, more: Partial<EngineTurn> = {}): void => {
      const reply = randomReply(random, `${seed}-${turns.length}`);
      const turn = this.turn(random, request, reply, turns.length, more);
      turns.push({ turn, request });
      steps.push({ kind: "turn", turn, delivered: random.chance(0.8) });
      const place = { ...request, call_id: turn.call_id, messages: [...request.messages, turn.reply] };
      places.push(place);
    };
    ask(freshRequest(random));
    while (turns.length < wanted) this.step(random, { steps, places, turns, ask });
    return steps;
  }

  private step(random: Random, tree: Growing): void {
    const { places, turns, ask, steps } = tree;
    const place = random.chance(0.6) ? places[places.length - 1]! : random.pick(places);
    const next = (): Place => ({ ...place, messages: [...place.messages, ...followUp(random, place)] });
    const last = random.pick(turns);
    const arrived = turns.length;
    const goOn = (): void => ask(next());
    const drift = (): void => ask({ ...next(), messages: drifted(random, next().messages) });
    const actions: (() => void)[] = [
      () => ask({ ...freshRequest(random), lane: `sub:${turns.length}` }),
      () => ask(last.request, { retry_of: last.turn.call_id }),
      () => ask(last.request),
      () => {
        ask(next(), { arrived_after: arrived });
        ask(next(), { arrived_after: arrived });
      },
      () => ask(next(), { checkpointable: false }),
      drift,
      drift,
      () => ask(compacted(random, next()), { harness: "pi" }),
      () => ask(truncated(next())),
      () => ask({ ...next(), tools: random.pick(["one", "two"]) }),
      () => ask({ ...next(), contract: random.pick(["c2", "c3"]) }),
      () => {
        steps.push(random.chance(0.5) ? { kind: "restart" } : { kind: "close", of: place.call_id! });
        goOn();
      },
      goOn,
      goOn,
      goOn,
      goOn,
    ];
    random.pick(actions)();
  }

  private turn(random: Random, request: Place, reply: Message, index: number, more: Partial<EngineTurn>): EngineTurn {
    const { messages, tools, contract } = request;
    const template = random.chance(0.1) ? "strip" : "keep";
    return {
      call_id: `t${index}`,
      prompt_ids: this.vocabulary.encode(promptTokens({ messages, tools, contract, template })),
      sampled_ids: this.vocabulary.encode(sampledTokens(reply)),
      checkpointable: true,
      lane: request.lane,
      messages,
      reply,
      tools_sha256: Buffer.from(tools.padEnd(32, ".")).toString("hex"),
      renderer_contract: contract,
      retry_of: null,
      harness: null,
      arrived_after: null,
      ...more,
    };
  }
}

interface Growing {
  steps: Step[];
  places: Place[];
  turns: { turn: EngineTurn; request: Place }[];
  ask: (request: Place, more?: Partial<EngineTurn>) => void;
}

function sentence(random: Random): string {
  return Array.from({ length: 1 + random.below(3) }, () => random.pick(WORDS)).join(" ");
}

function freshRequest(random: Random): Place {
  const messages: Message[] = random.chance(0.7) ? [{ role: "system", content: sentence(random) }] : [];
  messages.push({ role: "user", content: `${sentence(random)} ${random.below(1000)}` });
  return { call_id: null, messages, lane: "main", tools: "one", contract: "c1" };
}

function randomReply(random: Random, name: string): Message {
  const reply: Message = { role: "assistant", content: random.chance(0.1) ? null : sentence(random) };
  if (random.chance(0.5)) reply.reasoning = `${sentence(random)} `;
  if (random.chance(0.6)) reply.tool_calls = [{ id: `call-${name}`, name: "bash", arguments: '{"a":  1, "b": "é"}' }];
  return reply;
}

function followUp(random: Random, place: Place): Message[] {
  const reply = place.messages[place.messages.length - 1]!;
  const results = (reply.tool_calls ?? []).map(
    (call): Message => ({ role: "tool", tool_call_id: call.id, content: sentence(random) }),
  );
  return results.length > 0 && random.chance(0.8) ? results : [...results, { role: "user", content: sentence(random) }];
}

/** Rewrites one assistant message, or the system text, as harnesses do. */
function drifted(random: Random, messages: readonly Message[]): Message[] {
  const kind = random.below(5);
  const targets = messages.flatMap((message, i) => (message.role === "assistant" ? [i] : []));
  const at = random.chance(0.6) ? targets[targets.length - 1] : random.pick(targets);
  return messages.map((message, i) => {
    if (kind === 4 && message.role === "system") return { ...message, content: `${message.content} now` };
    if (i !== at) return message;
    const { reasoning, ...rest } = message;
    if (kind === 0) return rest;
    if (kind === 1 && reasoning !== undefined) return { ...rest, reasoning: reasoning.trim() };
    if (kind === 2) return { ...message, content: "rewritten" };
    if (message.tool_calls === undefined) return message;
    return { ...message, tool_calls: message.tool_calls.map((call) => ({ ...call, arguments: '{"a":1,"b":"é"}' })) };
  });
}

function compacted(random: Random, place: Place): Place {
  const system = place.messages.filter((message) => message.role === "system");
  const content = `The conversation history before this point was compacted ${sentence(random)}`;
  const assistant = place.messages.findLastIndex((message) => message.role === "assistant");
  const tail = random.chance(0.5) ? place.messages.slice(assistant) : [];
  return { ...place, messages: [...system, { role: "user", content }, ...tail] };
}

function truncated(place: Place): Place {
  const system = place.messages.filter((message) => message.role === "system");
  const assistant = place.messages.findLastIndex((message) => message.role === "assistant");
  return { ...place, messages: [...system, ...place.messages.slice(assistant)] };
}
