import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/record/limits.js";
import type { Manifest } from "../../src/record/manifest.js";
import type { DecisionEvidence, TurnRecord } from "../../src/record/records.js";
import { verifyTrajectory } from "../../src/verify/verify.js";
import { type Files, type OwnRecord, readFiles, writeAll, writeFile } from "../support/rewrite.js";
import { Conversation, concat, ids, intent, keepDir, openWriter, turn } from "../support/turns.js";

const { openSegmentsMax } = LIMITS;
// so that files are parked in a short life too
beforeAll(() => void Object.assign(LIMITS, { openSegmentsMax: 1 }));
afterAll(() => void Object.assign(LIMITS, { openSegmentsMax }));

const evidence = (more: Partial<DecisionEvidence>): DecisionEvidence => ({
  match_tokens: 3,
  against_tokens: 9,
  expected_id: 1,
  actual_id: 2,
  kept_sampled: 1,
  cause: "retokenised",
  cause_detail: "where",
  checkpoint_tokens: 9,
  checkpoint_call_id: "main-1",
  against_call_id: "main-1",
  ...more,
});

const rich: Partial<TurnRecord> = {
  lane_evidence: { rule: "first", detail: "seen" },
  messages_new: [{ role: "tool", content: "one", tool_call_id: "c0", name: "calc" }],
  logprob_gaps: [{ index: 1, was: "missing" }],
  logprobs: Float32Array.of(-0.5, Number.NaN, -0.25, -1),
  stop_reason: 7,
  defects: ["logprob_not_finite"],
  usage: { prompt_tokens: 14, completion_tokens: 4, cached_tokens: 3 },
  weight_versions: [
    { version: "v1", start: 0, end: 2 },
    { version: "v2", start: 2, end: 4 },
  ],
  junction: { kind: "tool_loop", seam_ids: ids(2000, 2), certificate: "00" },
  message: {
    role: "assistant",
    content: "text",
    reasoning: "hm",
    tool_calls: [{ id: "c1", name: "calc", arguments: "{}" }],
  },
  upstream_request_id: "u1",
  times: { received_ms: 1, sent_ms: 2, first_token_ms: 3, finished_ms: 4 },
};

/** Every record type but the gap, and every field of each with a value. */
async function record(out: string): Promise<string> {
  const writer = await openWriter(out, {
    runId: "r",
    groupId: "g",
    trialId: "t",
    attempt: 2,
    metadata: { task: "sum" },
  });
  const main = new Conversation("main");
  const body = `{"call":"${"x".repeat(300)}"`;
  const asked = (callId: string): void =>
    writer.writeIntent({ ...intent(callId, `${body},"id":"${callId}"}`), headers: { "user-agent": "pi" } });
  asked("main-1");
  const tools = [{ name: "calc", description: "adds", parameters: '{"type":"object"}', strict: true }];
  const none = { checkpoint_tokens: 0, checkpoint_call_id: null, against_call_id: null };
  const first = { kind: "new_segment" as const, reason: "first_turn", evidence: evidence(none) };
  await writer.commitTurn({ open: { parent: null }, turn: main.next({ tools, decision: first }) });
  asked("main-2");
  const fallback = { reason: "r", detail: "d" };
  const shadow = { full_tokens: 9, match_tokens: 9 };
  const append = { kind: "append" as const, reason: "extends_tip", evidence: evidence({ fallback, shadow }) };
  await writer.commitTurn({
    segment: 1,
    turn: main.next({ ...rich, messages_keep: 2, tools: null, decision: append }),
  });
  asked("side-1");
  const shared = main.line.slice(0, 9);
  const branch = { kind: "branch" as const, reason: "branch", evidence: evidence({}) };
  const side = turn("side-1", concat(shared, ids(7000, 2)), ids(8000, 3), 9, { decision: branch, lane: "sub:a" });
  await writer.commitTurn({ open: { parent: { segment: 1, tokens: 9 } }, turn: side });
  asked("main-3");
  await writer.commitTurn({
    segment: 1,
    turn: main.next({
      decision: { ...append, evidence: evidence({ checkpoint_call_id: "main-2", checkpoint_tokens: 18 }) },
    }),
  });
  asked("late");
  for (const [callId, outcome] of [
    ["main-1", "delivered"],
    ["main-2", "failed"],
  ] as const)
    writer.writeDelivery({ call_id: callId, outcome, bytes: 9, status: 200, detail: "d", at_ms: 5 });
  writer.writeJournal("uncaptured", {
    call_id: "late",
    reason: "refused",
    status: 400,
    detail: "d",
    lost_tokens: false,
    at_ms: 6,
  });
  asked("again");
  writer.writeJournal("replay", { call_id: "main-3", replay_call_id: "again", matched_by: "body", at_ms: 7 });
  await writer.seal({ reason: "test", drift: { retokenised: 2 } });
  return path.join(out, "t1");
}

/** Another value that a record may have there, by the path's end; tried before what a value's type suggests. */
const OTHERS: Record<string, unknown> = {
  lane: "aux:title",
  dialect: "responses",
  stream: "none",
  logprob_mode: "processed",
  prompt_mode: "incremental",
  finish_reason: "length",
  kind: "new_segment",
  role: "user",
  event: "crash",
  why: "recovered",
  durability: "write",
  outcome: "failed",
  parent: { segment: 1, tokens: 9 },
  continues: { segment: 1, why: "parked" },
  base_call_id: "main-3",
  checkpoint_call_id: "nobody",
  against_call_id: "nobody",
  detail: "another",
};

function otherThan(value: unknown, name: string): unknown[] {
  const other = OTHERS[name] !== undefined && OTHERS[name] !== value ? [OTHERS[name]] : [];
  if (value instanceof Uint8Array) return [value.map((byte, i) => (i === 0 ? byte ^ 1 : byte))];
  if (value instanceof Int32Array) return [value.map((id, i) => (i === 0 ? id + 1 : id))];
  if (value instanceof Float32Array || value instanceof Float64Array)
    return [value.map((x, i) => (i === 0 ? x - 0.5 : x))];
  if (typeof value === "number") return [value + 1, value - 1];
  if (typeof value === "boolean") return [!value];
  return typeof value === "string" ? [...other, `${value}x`] : other;
}

type Edit = { path: string; apply: (root: Record<string, unknown>) => void };

/** An edit of every field, down to the last one; of a list its first entry, and the list without its last. */
function* editsOf(value: unknown, keys: (string | number)[] = []): Generator<Edit> {
  const name = keys.filter((key) => typeof key === "string");
  const set = (changed: unknown): Edit => ({
    path: name.join("."),
    apply: (root) => {
      // biome-ignore lint/suspicious/noExplicitAny: a path into a record
      const holder = keys.slice(0, -1).reduce<any>((at, key) => at[key], root);
      holder[keys.at(-1)!] = changed;
    },
  });
  const isPlain = typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
  if (!isPlain) {
    for (const other of otherThan(value, String(name.at(-1)))) yield set(other);
    return;
  }
  if (Array.isArray(value)) {
    if (value.length > 0) yield set(value.slice(0, -1));
    if (typeof value[0] === "object") yield* editsOf(value[0], [...keys, 0]);
    return;
  }
  for (const [key, inner] of Object.entries(value)) yield* editsOf(inner, [...keys, key]);
}

const clone = (files: Files): Files => structuredClone(files);

interface Outcome {
  /** Field → whether verify noticed each edit of it; an edit that no reader accepts counts as noticed. */
  alone: Map<string, boolean>;
  together: Map<string, boolean>;
}

function tryAll(dir: string): Outcome {
  const outcome: Outcome = { alone: new Map(), together: new Map() };
  const files = readFiles(dir);
  const whole = [...files.keys(), "manifest.json", "COMPLETE"].map((name) => path.join(dir, name));
  const bytes = whole.map((name) => fs.readFileSync(name));
  const manifest = fs.readFileSync(path.join(dir, "manifest.json"));
  const note = (to: Map<string, boolean>, field: string, write: () => void): void => {
    let noticed = true;
    try {
      write();
      noticed = !["complete", "incomplete"].includes(verifyTrajectory(dir).status);
    } catch (error) {
      expect(error).toMatchObject({ code: "format_invalid" });
    }
    // one edit of a field that passes is enough to say that nothing else witnesses it
    to.set(field, noticed && (to.get(field) ?? true));
    for (const [index, name] of whole.entries()) fs.writeFileSync(name, bytes[index]!);
  };
  for (const [file, records] of files) {
    for (const [index, one] of records.entries()) {
      for (const { path: field, apply } of editsOf(one.record)) {
        const name = `${one.name} ${field}`;
        note(outcome.alone, name, () => {
          const copy = clone(files).get(file)!;
          apply(copy[index]!.record);
          writeFile(dir, file, copy, copy[index]!);
        });
        note(outcome.together, name, () => {
          const copy = clone(files);
          apply(copy.get(file)![index]!.record);
          writeAll(dir, copy, copy.get(file)![index]!);
        });
      }
    }
  }
  for (const { path: field, apply } of editsOf(JSON.parse(manifest.toString()))) {
    note(outcome.together, `manifest ${field}`, () => {
      const changed = JSON.parse(manifest.toString()) as Manifest;
      apply(changed as unknown as Record<string, unknown>);
      writeAll(dir, clone(files), NOTHING, changed);
    });
  }
  return outcome;
}

const NOTHING: OwnRecord = { name: "gap", record: null };

describe("O.133 an edit of one field, with every frame, checksum and chain made right", () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = tryAll(await record(keepDir()));
  }, 120_000);

  it("is evident without an anchor where only its own file was written anew, whatever the field", () => {
    const passed = [...outcome.alone].filter(([, noticed]) => !noticed).map(([field]) => field);
    expect(passed).toEqual([]);
  });

  it("is evident where commits, heads, seals and manifest agree with it, but for the fields that docs/format.md lists", () => {
    const passed = [...outcome.together].filter(([, noticed]) => !noticed).map(([field]) => field);
    expect(passed.sort()).toEqual(believedFields().sort());
  });
});

/** The second table of docs/format.md#witnesses: `record field` of what nothing else says. */
function believedFields(): string[] {
  const text = fs.readFileSync(path.resolve(import.meta.dirname, "../../../../docs/format.md"), "utf8");
  const part = text.slice(text.indexOf("### What nothing else says")).split(/\n#+ /)[0]!;
  const rows = part.split("\n").filter((line) => /^\| [a-z_]+ \|/.test(line));
  return rows.flatMap((row) => {
    const [, name, fields] = row.split("|").map((cell) => cell.trim());
    return [...fields!.matchAll(/`([^`]+)`/g)].map((match) => `${name} ${match[1]}`);
  });
}
