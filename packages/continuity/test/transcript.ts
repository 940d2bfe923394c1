/**
 * Transcripts: commands in, decisions out. Lines that begin with `=` are what the engine answered; the rest is read.
 *
 *   call NAME [lane=… retry=NAME after=N aborted tools=… contract=… harness=… template=strip|ids|respell checkpoint=NAME commit=no]
 *     history NAME            the messages of that call and its reply
 *     system|developer|user: text      tool(ID): text      assistant: …
 *     reply: <think>…</think>text @call ID NAME ARGUMENTS
 *   deliver NAME delivered|failed      close SEGMENT parked      restart
 *   find NAME …                        incremental mode: which checkpoint do these messages continue?
 */
import type { Message, TurnRecord } from "@tito/format";
import {
  closeSegment,
  commit,
  createState,
  type Decision,
  decide,
  type EngineState,
  type EngineTurn,
  findCheckpoint,
  type RestoredTurn,
  restore,
  setDelivery,
} from "../src/index.js";
import { recordOf } from "./records.js";
import { parseAssistant, promptTokens, sampledTokens, type Template, Vocabulary } from "./toy-model.js";

interface Block {
  command: string[];
  lines: string[];
}

/** The transcript with its `=` lines made anew. */
export function replay(source: string): string {
  const player = new Player();
  const out: string[] = [];
  let block: Block | null = null;
  const finish = (): void => {
    if (block !== null) out.push(...player.run(block).map((line) => `  = ${line}`));
    block = null;
  };
  for (const line of source.split("\n")) {
    if (/^\s+= /.test(line)) continue;
    const isBody = /^\s+\S/.test(line);
    if (!isBody) finish();
    out.push(line);
    if (isBody && block !== null) block.lines.push(line.trim());
    else if (/^[a-z]/.test(line)) block = { command: line.trim().split(/\s+/), lines: [] };
  }
  finish();
  return out.join("\n");
}

interface Played {
  messages: Message[];
  reply: Message;
}

class Player {
  private readonly vocabulary = new Vocabulary();
  private readonly calls = new Map<string, Played>();
  private readonly records: RestoredTurn[] = [];
  private state: EngineState = createState();

  run(block: Block): string[] {
    const [verb, name = "", ...options] = block.command;
    switch (verb) {
      case "call":
        return this.call(name, new Map(options.map((option) => option.split("=", 2) as [string, string])), block.lines);
      case "find":
        return this.find(new Map(options.map((option) => option.split("=", 2) as [string, string])), block.lines);
      case "deliver":
        setDelivery(this.state, name, options[0] === "delivered" ? "delivered" : "failed");
        for (const record of this.records)
          if (record.record.call_id === name) record.delivery = options[0] === "delivered" ? "delivered" : "failed";
        return [];
      case "close":
        closeSegment(this.state, Number(name), options[0] === "parked" ? "parked" : "recovered");
        return [];
      case "restart": {
        const restored = restore(this.records);
        this.state = restored.state;
        return [`restored ${this.records.length - restored.skipped.length} turns, skipped ${restored.skipped.length}`];
      }
      default:
        throw new Error(`unknown command: ${block.command.join(" ")}`);
    }
  }

  private messages(lines: readonly string[]): { messages: Message[]; reply: Message | null } {
    const messages: Message[] = [];
    let reply: Message | null = null;
    for (const line of lines) {
      const history = /^history (\S+)$/.exec(line);
      const tool = /^tool\((\S+)\): ?(.*)$/.exec(line);
      const other = /^(system|developer|user|assistant|reply): ?(.*)$/.exec(line);
      if (history !== null) {
        const played = this.calls.get(history[1]!)!;
        messages.push(...played.messages, played.reply);
      } else if (tool !== null) messages.push({ role: "tool", tool_call_id: tool[1]!, content: text(tool[2]!) });
      else if (other?.[1] === "reply") reply = parseAssistant(text(other[2]!));
      else if (other?.[1] === "assistant") messages.push(parseAssistant(text(other[2]!)));
      else if (other != null) messages.push({ role: other[1] as "user", content: text(other[2]!) });
      else throw new Error(`cannot read: ${line}`);
    }
    return { messages, reply };
  }

  private call(name: string, options: Map<string, string>, lines: readonly string[]): string[] {
    const { messages, reply } = this.messages(lines);
    const source = reply ?? { role: "assistant", content: name };
    const tools = options.get("tools") ?? "";
    const contract = options.get("contract") ?? "c1";
    const template = (options.get("template") ?? "keep") as Template;
    const returned = JSON.parse(JSON.stringify(source).replaceAll("|", "")) as Message;
    const turn: EngineTurn = {
      call_id: name,
      prompt_ids: this.vocabulary.encode(promptTokens({ messages, tools, contract, template })),
      sampled_ids: this.vocabulary.encode(sampledTokens(source, template).filter((token) => token !== "|")),
      checkpointable: !options.has("aborted"),
      lane: (options.get("lane") ?? "main") as EngineTurn["lane"],
      messages,
      reply: returned,
      tools_sha256: digestOf(tools),
      renderer_contract: contract,
      retry_of: options.get("retry") ?? null,
      harness: options.get("harness") ?? null,
      arrived_after: options.has("after") ? Number(options.get("after")) : null,
    };
    const fixed = options.get("checkpoint");
    const decision = decide(this.state, turn, fixed === undefined ? {} : { checkpoint: fixed });
    const number = this.state.last_commit + 1;
    const segment = decision.segment;
    commit(this.state, turn, decision, number);
    this.calls.set(name, { messages, reply: returned });
    this.records.push({
      segment,
      parent: decision.kind === "append" ? null : decision.parent,
      continues: decision.kind === "append" ? null : decision.continues,
      commit: number,
      delivery: "unknown",
      record: recordOf(turn, decision) as TurnRecord,
    });
    return this.describe(decision, turn);
  }

  private describe(decision: Decision, turn: EngineTurn): string[] {
    const { evidence } = decision;
    const where =
      decision.kind === "append" || decision.parent === null
        ? ""
        : ` from ${decision.parent.segment}:${decision.parent.tokens}`;
    const continues =
      decision.kind !== "append" && decision.continues !== null
        ? `, continues segment ${decision.continues.segment}`
        : "";
    const lines = [
      `${decision.kind} → segment ${decision.segment}${where}, ${decision.reason}${continues}`,
      `keeps ${decision.prompt_keep} of ${turn.prompt_ids.length} ids and ${decision.messages_keep} of ${turn.messages.length} messages; ` +
        `matches ${evidence.match_tokens} of ${evidence.against_tokens} with ${evidence.kept_sampled} sampled` +
        (evidence.checkpoint_call_id == null ? "" : `; extends ${evidence.checkpoint_call_id}`),
    ];
    if (evidence.expected_id !== null)
      lines.push(
        `expected ${this.vocabulary.decode(evidence.expected_id)}, got ${this.vocabulary.decode(evidence.actual_id)}`,
      );
    if (evidence.cause !== null) lines.push(`cause ${evidence.cause}: ${evidence.cause_detail}`);
    return lines;
  }

  private find(options: Map<string, string>, lines: readonly string[]): string[] {
    const found = findCheckpoint(this.state, {
      messages: this.messages(lines).messages,
      tools_sha256: digestOf(options.get("tools") ?? ""),
      renderer_contract: options.get("contract") ?? "c1",
      harness: options.get("harness") ?? null,
    });
    if (found.kind === "fallback") return [`full history: ${found.reason} (${found.detail})`];
    const kept = found.kept.map((one) => `${one.message}:${one.difference}`).join(" ");
    return [
      `checkpoint of ${found.call_id} at ${found.segment}:${found.tokens}, new from message ${found.from}${kept === "" ? "" : `, keeps ${kept}`}`,
    ];
  }
}

/** A word as the hex text of a digest, so that it survives the way through a record. */
function digestOf(word: string): string {
  return Buffer.from(word.padEnd(32, ".")).toString("hex");
}

/** `\n` in a transcript is a line break. */
function text(source: string): string {
  return source.replaceAll("\\n", "\n").replaceAll("\\s", " ");
}
