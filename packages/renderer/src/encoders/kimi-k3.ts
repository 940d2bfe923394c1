/**
 * Kimi K3: prompts as the vendor's encoder writes them (its `encoding_k3.py`): segments that are tokenized one by one, marks as tokens,
 * everything else as plain text.
 */

import { PyFloat } from "@huggingface/jinja";
import { type Message, TitoError, type ToolDefinition } from "@tito/format";
import { type JsonValue, tryLosslessJson } from "../template/lossless-json.js";
import { contentText } from "../template/message-values.js";
import { pythonStrip } from "../template/python-strip.js";
import type { ValueGuard } from "../tokenizer/value-guard.js";
import { K3_TOKENS } from "./kimi-k3-tokens.js";
import type { PromptWriter } from "./prompt-writer.js";
import { pythonJson, sortedByKey } from "./python-json.js";

const EFFORTS = ["low", "high", "max"];

const refuse = (why: string): never => {
  throw new TitoError("bad_request", `Kimi K3's encoder refuses this conversation: ${why}`);
};

type Attribute = [key: string, value: string];

/** Segments of one prompt; text is guarded as it comes in. */
class Segments {
  readonly list: string[] = [];
  readonly #guard: ValueGuard;

  constructor(guard: ValueGuard) {
    this.#guard = guard;
  }

  text(text: string): void {
    if (text !== "") this.list.push(this.#guard.protect(text));
  }

  open(tag: string, attributes: readonly Attribute[] = []): void {
    this.list.push(K3_TOKENS.open, tag);
    for (const [key, value] of attributes) {
      this.list.push(` ${key}`, '="');
      this.text(value.replaceAll("&", "&amp;").replaceAll('"', "&quot;"));
      this.list.push('"');
    }
    this.list.push(K3_TOKENS.sep);
  }

  close(tag: string): void {
    this.list.push(K3_TOKENS.close, tag, K3_TOKENS.sep);
  }

  element(tag: string, attributes: readonly Attribute[], text: string): void {
    this.open(tag, attributes);
    this.text(text);
    this.close(tag);
  }

  message(attributes: readonly Attribute[], text: string): void {
    this.element("message", attributes, text);
    this.list.push(K3_TOKENS.end);
  }
}

const asIs = (text: string): string => text;

function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "string") return typeof value;
  if (Array.isArray(value)) return "array";
  if (value instanceof Map) return "object";
  return value instanceof PyFloat || typeof value === "number" || typeof value === "bigint" ? "number" : "array";
}

/** Arguments that are no JSON object are none, as in vLLM. */
function writeArguments(out: Segments, text: string): void {
  const value = tryLosslessJson(text);
  for (const [key, item] of value instanceof Map ? value : []) {
    const shown = typeof item === "string" ? item : pythonJson(item, { protect: asIs });
    out.element(
      "argument",
      [
        ["key", key],
        ["type", typeOf(item)],
      ],
      shown,
    );
  }
}

const named = (message: Message): Attribute[] =>
  message.name === undefined || message.name === "" ? [] : [["name", message.name]];

function writeAssistant(out: Segments, message: Message, thinking: boolean): void {
  out.open("message", [["role", "assistant"], ...named(message)]);
  if (thinking) {
    const reasoning = message.reasoning ?? "";
    out.element("think", [], pythonStrip(reasoning) === "" ? "" : reasoning);
  }
  out.element("response", [], contentText(message.content) ?? "");
  const calls = message.tool_calls ?? [];
  if (calls.length > 0) {
    out.open("tools");
    for (const [i, call] of calls.entries()) {
      out.open("call", [
        ["tool", call.name],
        ["index", String(i + 1)],
      ]);
      writeArguments(out, call.arguments);
      out.close("call");
    }
    out.close("tools");
  }
  out.close("message");
  out.list.push(K3_TOKENS.end);
}

/**
 * A run of results in the order of the calls that they answer, each with its tool's name; as it came when one answers none.
 * `before`: how many results of the same turn were written already.
 */
function nameResults(
  run: readonly Message[],
  asked: Message | undefined,
  before: number,
): [tool: string | undefined, result: Message][] {
  const calls = asked?.tool_calls ?? [];
  const places = run.map((result) => calls.findIndex((call) => call.id === result.tool_call_id));
  if (places.includes(-1)) return run.map((result, i) => [result.name ?? calls[before + i]?.name, result]);
  return run
    .map((result, i): [number, Message] => [places[i]!, result])
    .sort((a, b) => a[0] - b[0])
    .map(([place, result]) => [calls[place]!.name, result]);
}

function writeTools(out: Segments, tools: readonly ToolDefinition[]): void {
  const listed = tools.map(({ name, description, parameters, strict }): JsonValue => {
    const fn = new Map<string, JsonValue>([["name", name]]);
    if (description !== undefined) fn.set("description", description);
    if (parameters !== undefined) fn.set("parameters", tryLosslessJson(parameters) ?? new Map());
    if (strict !== undefined) fn.set("strict", strict);
    return new Map<string, JsonValue>([
      ["type", "function"],
      ["function", fn],
    ]);
  });
  const json = pythonJson(sortedByKey(listed), { compact: true, protect: asIs });
  const body = `# Tools\nHere are the available tools, described in JSONSchema.\n\n\`\`\`json\n${json}\n\`\`\``;
  out.message(
    [
      ["role", "system"],
      ["type", "tool-declare"],
    ],
    body,
  );
}

/** `thinking` (also spelled `enable_thinking`), on unless switched off, and the effort where one is asked for. */
function thinkingOf(given: Readonly<Record<string, unknown>>): { thinking: boolean; effort: unknown } {
  const asked = given.thinking ?? given.enable_thinking ?? given.reasoning_effort !== "none";
  const effort = given.thinking_effort ?? (given.reasoning_effort === "none" ? undefined : given.reasoning_effort);
  const unset = effort === undefined || effort === null;
  if (!unset && !EFFORTS.includes(String(effort))) refuse(`thinking effort is one of ${EFFORTS.join(", ")}`);
  return { thinking: asked !== false, effort: unset ? null : effort };
}

export const writeKimiK3: PromptWriter = (messages, tools, guard, { given, generationPrompt }) => {
  const out = new Segments(guard);
  const { thinking, effort } = thinkingOf(given);
  if (tools.length > 0) writeTools(out, tools);
  if (thinking && effort !== null) {
    const body = `\`thinking_effort\` guides on how much to think in your thinking channel (not including the response channel), supported values include \`low\`, \`medium\`, \`high\`, and \`max\`.\nNow the system is invoked with \`thinking_effort=${String(effort)}\`.`;
    out.message(
      [
        ["role", "system"],
        ["type", "thinking-effort"],
      ],
      body,
    );
  }
  let asked: Message | undefined;
  let results = 0;
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (message.role === "assistant") {
      asked = message;
      results = 0;
      writeAssistant(out, message, thinking);
    } else if (message.role === "tool") {
      let end = at + 1;
      while (messages[end]?.role === "tool") end++;
      for (const [tool, result] of nameResults(messages.slice(at, end), asked, results)) {
        const name = tool ?? refuse("a tool result that answers no call and names no tool");
        out.message(
          [
            ["role", "tool"],
            ["tool", name],
            ["index", String(++results)],
          ],
          contentText(result.content) ?? "",
        );
      }
      at = end - 1;
    } else
      out.message(
        [["role", message.role === "user" ? "user" : "system"], ...named(message)],
        contentText(message.content) ?? "",
      );
  }
  if (generationPrompt) {
    out.open("message", [["role", "assistant"]]);
    out.open(thinking ? "think" : "response");
  }
  return out.list;
};
