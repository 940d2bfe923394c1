/**
 * Body of llama-server's own completion route for prompt ids. Its defaults are not neutral (temperature 0.8, top_k 40, top_p 0.95, min_p 0.05) and a server's start
 * flags can add samplers that no request names: the chain is named as a whole.
 */
import { TitoError } from "@tito/format";
import type { IdsCall } from "./adapter.js";

export const LLAMACPP_COMPLETION_PATH = "/completion";

/** Samplers that leave the distribution alone unless a field of theirs is set; any other one of the server's stays out. */
const SAMPLERS = ["penalties", "top_k", "top_p", "min_p", "temperature"];
/** vLLM's names → llama.cpp's, where they differ. */
const RENAMED: ReadonlyMap<string, string> = new Map([["repetition_penalty", "repeat_penalty"]]);
/** Sampling fields that the route has. */
const KNOWN: ReadonlySet<string> = new Set([
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "repetition_penalty",
  "presence_penalty",
  "frequency_penalty",
  "seed",
]);
const CONSTRAINTS: ReadonlySet<string> = new Set(["logit_bias", "ignore_eos", "tool_choice"]);

/**
 * An output parser that reads nothing. The server runs one over every reply, this route's too, and its default fails a whole reply whose text is not valid UTF-8.
 */
const NO_PARSER = JSON.stringify({ parsers: [{ type: "epsilon" }], rules: {}, root: 0 });

/**
 * `parserless`: the server takes a parser with a request.
 * @throws TitoError `unsupported` for sampling fields that the route does not have: it would ignore them silently.
 */
export function llamacppBody(call: IdsCall, { parserless }: { parserless: boolean }): string {
  refuseUnknown(call.request);
  const members = new Map<string, string>([
    ["model", JSON.stringify(call.model)],
    ["prompt", `[${call.promptIds.join(",")}]`],
    ["n_predict", String(call.maxTokens)],
    ["stream", String(call.stream)],
    ["return_tokens", "true"],
    ["n_probs", "1"],
    // Of the distribution that the token was drawn from, at any temperature, with sums in double precision.
    ["post_sampling_probs", "true"],
    ["cache_prompt", "true"],
    // Cached chunks moved to other positions are not what the model would compute.
    ["n_cache_reuse", "0"],
    ["t_max_predict_ms", "-1"],
    ["n_indent", "0"],
  ]);
  if (parserless) members.set("chat_parser", JSON.stringify(NO_PARSER));
  // Without fields of the neutral policy the server's own defaults are wanted, samplers included.
  if (call.sampling.size > 0) {
    members.set("samplers", JSON.stringify(SAMPLERS));
    for (const [name, text] of [
      ["mirostat", "0"],
      ["min_keep", "0"],
      ["dynatemp_range", "0"],
    ])
      members.set(name!, text!);
  }
  // Penalties look at the whole context, as other engines' do.
  members.set("repeat_last_n", String(call.promptIds.length + call.maxTokens));
  for (const [name, text] of call.sampling) members.set(RENAMED.get(name) ?? name, spelled(name, text));
  for (const [name, value] of Object.entries(call.request.sampling))
    members.set(RENAMED.get(name) ?? name, spelled(name, JSON.stringify(value)));
  for (const [name, text] of call.request.constraints ?? []) if (name !== "tool_choice") members.set(name, text);
  if (call.request.stop.length > 0) members.set("stop", JSON.stringify(call.request.stop));
  return `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/** Off is 0 here, -1 elsewhere. */
function spelled(name: string, text: string): string {
  return name === "top_k" && Number(text) < 0 ? "0" : text;
}

function refuseUnknown(request: IdsCall["request"]): void {
  const names = [
    ...Object.keys(request.sampling).filter((name) => !KNOWN.has(name)),
    ...[...(request.constraints?.keys() ?? [])].filter((name) => !CONSTRAINTS.has(name)),
  ];
  if (names.length === 0) return;
  throw new TitoError("unsupported", `llama.cpp can not be asked for ${names.join(", ")} with prompt ids`, {
    hint: "leave it out, or serve the model with vLLM",
  });
}
