/**
 * Harbor's `rollout_details`: one object a chat history, each with a list of calls by field (`prompt_token_ids`, `completion_token_ids`,
 * `logprobs`, each a list of lists, and `extra`). By its convention the first history is the main agent's. A multi-step trial has such a list
 * a step, under `step_results`. Pure.
 */
import { TitoError } from "@tito/format";
import { asArray, asObject, asString } from "../json/narrow.js";
import { emptyRequest, excusedDefects, logprobEntries } from "./call-line.js";
import type { Labels, LoggedCall } from "./logged-call.js";
import { label, readLabels } from "./read-fields.js";
import type { JsonRecord } from "./spellings.js";

/** One chat history, and where the record holds it. */
export interface RolloutDetail {
  value: unknown;
  /** Place in its list; the first is the main agent's. */
  index: number;
  /** For messages, as `rollout_details[0]`. */
  where: string;
  /** Step of a multi-step trial, null elsewhere. Part of the names of the calls. */
  step: number | null;
}

/**
 * The histories of a record: a whole trial result (of one step or several, steps in their order), an agent result, or one bare history.
 * Null when it is something else.
 * @throws TitoError `format_invalid` when `rollout_details` is no list.
 */
export function findRolloutDetails(record: JsonRecord): RolloutDetail[] | null {
  const steps = asArray(record.step_results) ?? [];
  const lists = [
    listOf(asObject(record.agent_result)?.rollout_details ?? record.rollout_details, null),
    ...steps.map((step, number) => listOf(asObject(asObject(step)?.agent_result)?.rollout_details, number)),
  ].filter((list) => list !== null);
  if (lists.length > 0) return lists.flat();
  const bare = asArray(asArray(record.prompt_token_ids)?.[0]) !== null;
  return bare ? [{ value: record, index: 0, where: "rollout_details[0]", step: null }] : null;
}

function listOf(nested: unknown, step: number | null): RolloutDetail[] | null {
  if (nested === undefined || nested === null) return null;
  const inside = step === null ? "" : `step_results[${step}].`;
  const details = asArray(nested);
  if (details === null) throw new TitoError("format_invalid", `${inside}rollout_details is not a list`);
  return details.map((value, index) => ({ value, index, where: `${inside}rollout_details[${index}]`, step }));
}

/** The ids of a trial, from a trial's result or from the usual fields. */
export function trialLabels(record: JsonRecord): Labels {
  const labels = readLabels(record);
  const task = label(record.task_name);
  return {
    ...labels,
    trialId: labels.trialId ?? label(record.trial_name),
    metadata: new Map([...(task === null ? [] : [["task", task] as const]), ...labels.metadata]),
  };
}

/** @throws TitoError `format_invalid` when the lists of a history do not belong together. */
export function readRolloutDetails(
  record: JsonRecord,
  details: readonly RolloutDetail[],
  ownId: string,
): { calls: LoggedCall[]; warnings: string[] } {
  const model = label(asObject(asObject(record.agent_info)?.model_info)?.name) ?? label(record.model);
  const warnings: string[] = [];
  const calls = details.flatMap((detail) => {
    const history = asObject(detail.value);
    if (history === null) throw new TitoError("format_invalid", `${detail.where} is not an object`);
    return readHistory(history, { ...detail, model, ownId, warnings });
  });
  return { calls, warnings };
}

interface History extends Omit<RolloutDetail, "value"> {
  model: string | null;
  ownId: string;
  warnings: string[];
}

function readHistory(detail: JsonRecord, history: History): LoggedCall[] {
  const { index, where, step, ownId, warnings } = history;
  const callsId = step === null ? `${ownId}-${index}` : `${ownId}-step${step}-${index}`;
  const prompts = lists(detail.prompt_token_ids, `${where}.prompt_token_ids`);
  const completions = lists(detail.completion_token_ids, `${where}.completion_token_ids`);
  if (prompts.length !== completions.length) {
    throw new TitoError(
      "format_invalid",
      `${where} has ${prompts.length} prompts and ${completions.length} completions: which belong together is not known`,
    );
  }
  let logprobs = detail.logprobs == null ? null : lists(detail.logprobs, `${where}.logprobs`);
  if (logprobs !== null && logprobs.length !== completions.length) {
    // The recorder of this layout leaves a call's list out when there is none: which call lacks it is not known.
    if (logprobs.length > 0) {
      warnings.push(
        `${where} has log probabilities for ${logprobs.length} of ${completions.length} calls: none is used`,
      );
    }
    logprobs = null;
  }
  const extra = Object.keys(asObject(detail.extra) ?? {});
  if (extra.length > 0) warnings.push(`${where}.extra is not read: ${extra.join(", ").slice(0, 200)}`);
  return prompts.map((prompt, turn) => {
    const choice = { token_ids: completions[turn], logprobs: logprobEntries(logprobs?.[turn]) };
    const reply = { prompt_token_ids: prompt, choices: [choice] };
    return historyCall({ ...history, turn, callId: `${callsId}-${turn}` }, reply);
  });
}

function historyCall(call: History & { turn: number; callId: string }, reply: JsonRecord): LoggedCall {
  const body = { ...(call.step === null ? {} : { step: call.step }), rollout_detail: call.index, turn: call.turn };
  return {
    callId: call.callId,
    dialect: "chat",
    headers: new Map(),
    request: emptyRequest(),
    body: JSON.stringify(body),
    sampling: {},
    reply,
    excused: excusedDefects(reply),
    lane: {
      lane: call.index === 0 ? "main" : `sub:${call.index}`,
      evidence: { rule: "import/rollout_details", detail: call.where },
    },
    logprobMode: null,
    // The agent's own client wrote them down after it had the answer.
    delivered: true,
    engine: null,
    model: asString(call.model),
    rendererContract: null,
    retryOf: null,
    times: { received: null, sent: null, firstToken: null, finished: null },
  };
}

function lists(value: unknown, where: string): readonly unknown[] {
  const list = asArray(value);
  if (list === null || list.some((item) => asArray(item) === null)) {
    throw new TitoError("format_invalid", `${where} is not a list of lists`);
  }
  return list;
}
