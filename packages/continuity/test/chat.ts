/** A conversation driver for tests: requests as messages, ids by the toy template, one state. */
import type { Message } from "@tito/format";
import {
  commit,
  createState,
  type Decision,
  decide,
  type EngineTurn,
  type FoundCheckpoint,
  findCheckpoint,
} from "../src/index.js";
import { promptTokens, sampledTokens, type Template, Vocabulary } from "./toy-model.js";

export interface Ask extends Partial<Omit<EngineTurn, "messages" | "reply">> {
  template?: Template;
  tools?: string;
}

export class Chat {
  readonly state = createState();
  private readonly vocabulary = new Vocabulary();
  private count = 0;

  /** `committed` is called after every turn. */
  constructor(private readonly committed: (turn: EngineTurn, decision: Decision, commit: number) => void = () => {}) {}

  ask(messages: readonly Message[], reply: Message, options: Ask = {}): Decision {
    const { template = "keep", tools = "one", ...more } = options;
    this.count += 1;
    const turn: EngineTurn = {
      call_id: `t${this.count}`,
      prompt_ids: this.vocabulary.encode(promptTokens({ messages, tools, contract: "c1", template })),
      sampled_ids: this.vocabulary.encode(sampledTokens(reply)),
      checkpointable: true,
      lane: "main",
      messages,
      reply,
      tools_sha256: Buffer.from(tools.padEnd(32, ".")).toString("hex"),
      renderer_contract: "c1",
      retry_of: null,
      harness: null,
      arrived_after: null,
      ...more,
    };
    const decision = decide(this.state, turn);
    commit(this.state, turn, decision, this.count);
    this.committed(turn, decision, this.count);
    return decision;
  }

  find(messages: readonly Message[], harness: string | null = null): FoundCheckpoint {
    return findCheckpoint(this.state, {
      messages,
      tools_sha256: Buffer.from("one".padEnd(32, ".")).toString("hex"),
      renderer_contract: "c1",
      harness,
    });
  }
}

export const user = (content: string): Message => ({ role: "user", content });
export const system = (content: string): Message => ({ role: "system", content });
export const result = (id: string, content: string): Message => ({ role: "tool", tool_call_id: id, content });
export const calls = (...ids: string[]): Message => ({
  role: "assistant",
  content: "",
  tool_calls: ids.map((id) => ({ id, name: "bash", arguments: '{"cmd":  "ls"}' })),
});
