/** Body of SGLang's `/generate` route. Omitted sampling fields would come from the model's generation_config.json, an omitted limit would be 128. */
import { TitoError } from "@tito/format";
import type { IdsCall } from "./adapter.js";

export const SGLANG_GENERATE_PATH = "/generate";

/** The harness's names → the route's, where they differ. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ["seed", "sampling_seed"],
  ["min_tokens", "min_new_tokens"],
]);
const CONSTRAINTS: ReadonlySet<string> = new Set(["stop_token_ids", "ignore_eos", "tool_choice"]);

/** @throws TitoError `unsupported` for what the route has no field for. */
export function sglangBody(call: IdsCall): string {
  const { request } = call;
  refuseUnknown(request);
  const given: unknown = JSON.parse(request.constraints?.get("stop_token_ids") ?? "[]");
  const stops = [...new Set([...call.stopTokenIds, ...(Array.isArray(given) ? given : [])])];
  const sampling = new Map<string, string>([
    ["max_new_tokens", String(call.maxTokens)],
    ["skip_special_tokens", "false"],
    ["spaces_between_special_tokens", "false"],
    ["no_stop_trim", "false"],
    ...[...call.sampling].map(([name, text]): [string, string] => [RENAMED.get(name) ?? name, text]),
    ...Object.entries(request.sampling).map(([name, value]): [string, string] => [
      RENAMED.get(name) ?? name,
      JSON.stringify(value),
    ]),
    ["stop_token_ids", JSON.stringify(stops)],
  ]);
  const ignoreEos = request.constraints?.get("ignore_eos");
  if (ignoreEos !== undefined) sampling.set("ignore_eos", ignoreEos);
  if (request.stop.length > 0) sampling.set("stop", JSON.stringify(request.stop));
  const params = [...sampling].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",");
  const members = [
    `"input_ids":[${call.promptIds.join(",")}]`,
    `"sampling_params":{${params}}`,
    // Output only: scoring the prompt would give up the prefix cache.
    '"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":1,"return_text_in_logprobs":false',
    '"return_prompt_token_ids":true',
    `"stream":${call.stream}`,
  ];
  return `{${members.join(",")}}`;
}

function refuseUnknown(request: IdsCall["request"]): void {
  const names = [
    ...Object.keys(request.sampling).filter((name) => name === "length_penalty"),
    ...[...(request.constraints?.keys() ?? [])].filter((name) => !CONSTRAINTS.has(name)),
  ];
  if (names.length === 0) return;
  throw new TitoError("unsupported", `SGLang can not be asked for ${names.join(", ")} with prompt ids`, {
    hint: "leave it out, or let the engine render (--renderer engine)",
  });
}
