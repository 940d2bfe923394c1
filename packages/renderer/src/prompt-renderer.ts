/** One renderer bundle at work: messages to prompt ids, sampled ids to a message. Keeps nothing between calls but caches. */
import { type AnyRuntimeValue, convertToRuntimeValues } from "@huggingface/jinja";
import type { Message, ToolDefinition } from "@tito/format";
import type { Bundle } from "./bundle/load-bundle.js";
import { type ModelFacts, modelFactsOf } from "./bundle/model-facts.js";
import { encodeWritten } from "./encoders/encode-written.js";
import { type Family, familyOf } from "./families/families.js";
import { LiveParser } from "./families/live-parser.js";
import { type ParsedOutput, toMessage } from "./families/output.js";
import { type Structure, structureOf, toSpans } from "./families/spans.js";
import { ChatTemplate } from "./template/chat-template.js";
import { MessageValues } from "./template/message-values.js";
import { type ReadingRules, readConversation, readingRules } from "./template/read-conversation.js";
import { loadBpeEngine } from "./tokenizer/bpe-engine.js";
import { type EncodedPrompt, Tokenizer } from "./tokenizer/tokenizer.js";
import type { AddedToken } from "./tokenizer/tokenizer-data.js";

export type TemplateArguments = Readonly<Record<string, string | number | boolean | null>>;

export interface RenderOptions {
  /** Ends the prompt where the assistant's turn begins; default true. */
  generationPrompt?: boolean;
  /** Arguments to the template, such as enable_thinking; they override the bundle's. */
  templateArguments?: TemplateArguments;
}

/** What is known about a turn beside its sampled ids. */
export interface TurnContext {
  /** The prompt's ids, or at least its last 32; tells whether the prompt opened a reasoning block. */
  promptTail: Int32Array;
  /** Number of ids in the whole prompt: part of what tool-call ids are made from. */
  promptTokens: number;
  tools: readonly ToolDefinition[];
}

export interface ParsedTurn {
  message: Message;
  /** The output does not follow the family's form: the message holds its raw text. */
  malformed: boolean;
}

const TAIL_IDS = 32;

export class PromptRenderer {
  readonly contractId: string;
  readonly stopIds: readonly number[];
  readonly model: ModelFacts;
  readonly tokenizer: Tokenizer;
  readonly family: Family;
  readonly familyName: string;
  readonly #manifest: Bundle["manifest"];
  readonly #template: ChatTemplate;
  readonly #values: MessageValues;
  readonly #reading: ReadingRules;
  readonly #structure: Structure;
  /** Tokens that no turn of the family holds, but for the one that ends it. */
  readonly #misplaced: ReadonlySet<number>;

  /** Loads the BPE engine of the bundle and everything else that a render needs. */
  static async open(bundle: Bundle): Promise<PromptRenderer> {
    return new PromptRenderer(bundle, new Tokenizer(bundle.tokenizer, await loadBpeEngine(bundle.bpeWasm)));
  }

  private constructor(bundle: Bundle, tokenizer: Tokenizer) {
    const { manifest } = bundle;
    this.#manifest = manifest;
    this.contractId = bundle.contractId;
    this.tokenizer = tokenizer;
    this.familyName = manifest.family;
    this.family = familyOf(manifest.family);
    this.#template = new ChatTemplate(bundle.template, manifest.template_variables, manifest.date);
    this.#values = new MessageValues(this.family.messages, tokenizer.guard);
    const { idByText } = tokenizer.addedTokens;
    this.#structure = structureOf(this.family.structure, tokenizer.added);
    this.#reading = readingRules(this.family, bundle.template);
    this.#misplaced = misplacedIds(tokenizer.added, this.family);
    this.stopIds = this.family.stops.map((text) => idByText.get(text)).filter((id) => id !== undefined);
    this.model = modelFactsOf(manifest, tokenizer, this.stopIds);
  }

  /** Arguments that every render passes to the template. */
  get templateArguments(): TemplateArguments {
    return this.#manifest.template_arguments;
  }

  /**
   * The ids of the conversation, equal to the reference's.
   * @throws TitoError `bad_request` when the template refuses the conversation, `unsupported` for content that is not text.
   */
  render(messages: readonly Message[], tools: readonly ToolDefinition[], options: RenderOptions = {}): EncodedPrompt {
    return encodeWritten(this.family.writer, this.tokenizer, this.chunks(messages, tools, options));
  }

  /** The rendered text before encoding, values guarded, in chunks. */
  chunks(conversation: readonly Message[], tools: readonly ToolDefinition[], options: RenderOptions = {}): string[] {
    const messages = readConversation(conversation, this.#reading);
    const given = { ...this.templateArguments, ...options.templateArguments };
    const { writer } = this.family;
    if (writer.kind !== "template") {
      const { date } = this.#manifest;
      const generationPrompt = options.generationPrompt ?? true;
      return writer.write(messages, tools, this.tokenizer.guard, { date, generationPrompt, given });
    }
    const variables = new Map<string, AnyRuntimeValue>([
      ["messages", this.#values.messages(messages)],
      ["tools", this.#values.tools(tools)],
      ["add_generation_prompt", convertToRuntimeValues(options.generationPrompt ?? true)],
    ]);
    for (const [name, value] of Object.entries(given)) {
      if (!variables.has(name)) variables.set(name, convertToRuntimeValues(value));
    }
    return this.#template.render(variables);
  }

  countTokens(messages: readonly Message[], tools: readonly ToolDefinition[], options: RenderOptions = {}): number {
    return this.render(messages, tools, options).ids.length;
  }

  /** The assistant message that the ids spell. Total: never throws on any ids. */
  parse(sampledIds: Int32Array, context: TurnContext): ParsedTurn {
    const output = this.#output(Array.from(sampledIds), context);
    return { message: toMessage(output, context.promptTokens, sampledIds), malformed: output.malformed };
  }

  /** Parses the same turn while it is being sampled. */
  liveParser(context: TurnContext): LiveParser {
    return new LiveParser({
      family: this.family,
      structure: this.#structure,
      bytes: this.tokenizer.bytes,
      stopIds: new Set(this.stopIds),
      reasoningOpen: this.opensReasoning(context.promptTail),
      parse: (ids) => {
        const output = this.#output(ids, context);
        return { output, message: toMessage(output, context.promptTokens, Int32Array.from(ids)) };
      },
    });
  }

  /** True when a prompt ends inside a reasoning block. */
  opensReasoning(promptTail: Int32Array): boolean {
    const mark = this.family.reasoning_prompt;
    return mark !== null && this.tokenizer.decode(promptTail.slice(-TAIL_IDS)).trimEnd().endsWith(mark);
  }

  decode(ids: Iterable<number>): string {
    return this.tokenizer.decode(ids);
  }

  #output(ids: readonly number[], context: TurnContext): ParsedOutput {
    const ended = this.stopIds.includes(ids.at(-1) ?? -1);
    const sampled = ended ? ids.slice(0, -1) : ids;
    const { bytes } = this.tokenizer;
    const { spans, damaged } = toSpans(sampled, this.#structure, bytes);
    const surroundings = { reasoning_open: this.opensReasoning(context.promptTail), ended, tools: context.tools };
    const output = this.family.parse(spans, surroundings);
    const misplaced = sampled.some((id) => this.#misplaced.has(id) || bytes.bytesOf(id).length === 0);
    return misplaced || damaged ? { ...output, malformed: true } : output;
  }
}

/** The family's stops, and every special token that is no part of its form: a value's text never becomes one, so the template put it there or nobody did. */
function misplacedIds(added: readonly AddedToken[], { structure, stops }: Family): ReadonlySet<number> {
  const misplaced = added.filter(({ special, text }) => (special || stops.includes(text)) && !structure.includes(text));
  return new Set(misplaced.map(({ id }) => id));
}
