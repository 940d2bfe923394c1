/**
 * Harbor's `rollout_details`: one object a chat history, each with a list of calls by field (`prompt_token_ids`, `completion_token_ids`,
 * `logprobs`, each a list of lists, and `extra`). By its convention the first history is the main agent's. Pure.
 */
import { TitoError } from "@tito/format";
import { asArray, asObject, asString } from "../json/narrow.js";
import { emptyRequest, excusedDefects, logprobEntries } from "./call-line.js";
import type { Labels, LoggedCall } from "./logged-call.js";
import { label, readLabels } from "./read-fields.js";
import type { JsonRecord } from "./spellings.js";

/** The histories of a record: a whole trial result, an agent result, or one bare history. Null when it is something else. */
export function findRolloutDetails(record: JsonRecord): readonly unknown[] | null {
  const nested = asObject(record.agent_result)?.rollout_details ?? record.rollout_details;
  if (nested !== undefined && nested !== null) {
    const details = asArray(nested);
    if (details === null) throw new TitoError("format_invalid", "rollout_details is not a list");
    return details;
  }
  return asArray(asArray(record.prompt_token_ids)?.[0]) === null ? null : [record];
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
  details: readonly unknown[],
  ownId: string,
): { calls: LoggedCall[]; warnings: string[] } {
  const model = label(asObject(asObject(record.agent_info)?.model_info)?.name) ?? label(record.model);
  const warnings: string[] = [];
  const calls = details.flatMap((value, index) => {
    const detail = asObject(value);
    if (detail === null) throw new TitoError("format_invalid", `rollout_details[${index}] is not an object`);
    return readHistory(detail, { index, model, ownId, warnings });
  });
  return { calls, warnings };
}

interface History {
  index: number;
  model: string | null;
  ownId: string;
  warnings: string[];
}

function readHistory(detail: JsonRecord, { index, model, ownId, warnings }: History): LoggedCall[] {
  const where = `rollout_details[${index}]`;
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
    return historyCall({ index, turn, model, callId: `${ownId}-${index}-${turn}` }, reply);
  });
}

function historyCall(
  call: { index: number; turn: number; model: string | null; callId: string },
  reply: JsonRecord,
): LoggedCall {
  const detail = `rollout_details[${call.index}]`;
  return {
    callId: call.callId,
    dialect: "chat",
    headers: new Map(),
    request: emptyRequest(),
    body: JSON.stringify({ rollout_detail: call.index, turn: call.turn }),
    sampling: {},
    reply,
    excused: excusedDefects(reply),
    lane: {
      lane: call.index === 0 ? "main" : `sub:${call.index}`,
      evidence: { rule: "import/rollout_details", detail },
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
