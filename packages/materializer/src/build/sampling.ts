/**
 * Are the recorded log probabilities those of the distribution that was sampled from? Pure.
 * A setting that nobody states is unknown, not neutral: engines fill it in from the model's generation_config.json or their own flags.
 */
import type { EvidenceTurn } from "../read/evidence.js";
import {
  FILLED_IN,
  SAMPLING_SETTINGS,
  type SamplingDefaults,
  type SamplingSetting,
} from "../recipe/sampling-settings.js";

/** Settings that are off when a request leaves them out, with the values that change nothing. */
const OFF_UNLESS_SET: ReadonlyMap<string, readonly unknown[]> = new Map<string, readonly unknown[]>([
  ["typical_p", [1]],
  ["typ_p", [1]],
  ["top_a", [0]],
  ["tfs", [1]],
  ["tfs_z", [1]],
  ["top_n_sigma", [0, -1]],
  ["xtc_probability", [0]],
  ["dry_multiplier", [0]],
  ["dynatemp_range", [0]],
  ["mirostat", [0]],
  ["min_tokens", [0]],
  ["min_new_tokens", [0]],
  ["length_penalty", [1, 0]],
  ["use_beam_search", [false]],
  ["best_of", [1]],
  ["n", [1]],
  ["num_beams", [1]],
  ["do_sample", [true]],
]);

/** Fields of a request that leave the distribution alone. Any other one is a setting that is not known. */
const HARMLESS: ReadonlySet<string> = new Set([
  ..."max_tokens max_new_tokens max_completion_tokens n_predict max_output_tokens".split(" "),
  ..."seed sampling_seed stop stop_token_ids stop_regex stop_sequences include_stop_str_in_output ignore_eos no_stop_trim".split(
    " ",
  ),
  ..."tool_choice response_format detokenize skip_special_tokens spaces_between_special_tokens".split(" "),
  ..."logprobs top_logprobs prompt_logprobs logprob_start_len top_logprobs_num return_logprob n_probs".split(" "),
  ..."post_sampling_probs return_token_ids return_tokens stream stream_options stream_interval model".split(" "),
  ..."truncate_prompt_tokens add_special_tokens cache_prompt priority user request_id".split(" "),
]);

/** Spellings of one setting. */
const ALIASES: ReadonlyMap<string, string> = new Map([["repeat_penalty", "repetition_penalty"]]);

/** Fields that forbid or force tokens: whatever the mode, the recorded value is not proven to be the masked distribution's. */
const CONSTRAINING = [
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "structured_outputs",
  "structural_tag",
  "json_schema",
  "regex",
  "ebnf",
  "grammar",
  "bad_words",
  "logit_bias",
  "allowed_token_ids",
  "thinking_token_budget",
  // Arguments of plug-ins that change the logits.
  "vllm_xargs",
  "extra_args",
  "custom_logit_processor",
  "logits_processors",
];

/**
 * Below this temperature the likeliest token is taken. vLLM and SGLang then report the log probability at temperature 1 (also where their
 * values are processed), llama.cpp reports 1 as the probability, and vLLM raises what lies between to this value in silence.
 */
const GREEDY_BELOW = 0.01;

/** Settings that choose among several answers, whatever each one's log probabilities are. */
const SEARCHES = ["use_beam_search", "num_beams", "best_of"];

type Settings = ReadonlyMap<string, unknown>;

/** Why the log probabilities are not known to be those of the distribution that was sampled from, in words; null: they are. */
export function behaviourDoubt(
  turn: Pick<EvidenceTurn, "sampling" | "logprob_mode">,
  defaults: SamplingDefaults,
): string | null {
  const settings = settingsOf(turn.sampling, defaults);
  const forced = constraint(settings) ?? greedy(settings);
  if (forced !== null || turn.logprob_mode === "processed") return forced;
  const mode = turn.logprob_mode === "raw" ? "raw log probabilities" : "log probabilities of an unknown kind";
  const doubt = untold(settings) ?? reshaped(settings);
  return doubt === null ? null : `${mode}, and ${doubt}`;
}

/** Settings that neither the turn nor the user states; empty: the distribution is known. */
export function untoldSettings(sampling: Readonly<Record<string, unknown>>, defaults: SamplingDefaults): string[] {
  const settings = settingsOf(sampling, defaults);
  return SAMPLING_SETTINGS.filter((name) => typeof settings.get(name) !== "number");
}

/** The settings of a turn as numbers, with what the user states where the turn does not; null: nothing states it. */
export function statedSettings(
  sampling: Readonly<Record<string, unknown>>,
  defaults: SamplingDefaults,
): Record<SamplingSetting, number | null> {
  const settings = settingsOf(sampling, defaults);
  const number = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : null);
  return Object.fromEntries(SAMPLING_SETTINGS.map((name) => [name, number(settings.get(name))])) as Record<
    SamplingSetting,
    number | null
  >;
}

function settingsOf(sampling: Readonly<Record<string, unknown>>, defaults: SamplingDefaults): Settings {
  const told = Object.entries(sampling)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]): [string, unknown] => [ALIASES.get(name) ?? name, value]);
  return new Map([...Object.entries(defaults), ...told]);
}

/** The decoding was constrained by a grammar, a schema, a forced tool or a token list. */
function constraint(settings: Settings): string | null {
  for (const field of CONSTRAINING) {
    const value = settings.get(field);
    if (value !== undefined && value !== false && !isEmpty(value)) return `${field} constrained the decoding`;
  }
  const format = settings.get("response_format");
  if (typeof format === "object" && format !== null && "type" in format && format.type !== "text")
    return "response_format constrained the decoding";
  const choice = settings.get("tool_choice");
  const kind = typeof choice === "object" && choice !== null && "type" in choice ? choice.type : choice;
  return kind === undefined || kind === "auto" || kind === "none" ? null : "tool_choice forced a call";
}

function greedy(settings: Settings): string | null {
  const temperature = settings.get("temperature");
  if (settings.get("do_sample") === false) return "do_sample is false: the likeliest token was taken, not sampled";
  for (const field of SEARCHES) {
    const value = settings.get(field);
    if (value === true || Number(value ?? 1) > 1) return `${field} searched for an answer, which was not sampled`;
  }
  if (temperature === undefined || Number(temperature) >= GREEDY_BELOW) return null;
  return `temperature ${temperature}: the likeliest token was taken, not sampled`;
}

function untold(settings: Settings): string | null {
  const missing = SAMPLING_SETTINGS.filter((name) => typeof settings.get(name) !== "number");
  return missing.length === 0 ? null : `nothing states ${missing.join(", ")}`;
}

function reshaped(settings: Settings): string | null {
  for (const [name, value] of settings) {
    const neutral = (FILLED_IN as Record<string, readonly unknown[]>)[name] ?? OFF_UNLESS_SET.get(name);
    if (neutral === undefined ? HARMLESS.has(name) || CONSTRAINING.includes(name) : neutral.includes(value)) continue;
    const shown = JSON.stringify(value).slice(0, 40);
    return neutral === undefined ? `${name} is a setting that is not known` : `${name} is ${shown}`;
  }
  return null;
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
