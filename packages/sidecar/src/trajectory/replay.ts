/**
 * Answers that were finished but never delivered, and calls whose harness has gone while the engine still works.
 * A retry of such a call is served from here: no second sample, no second turn. A call with a live harness is never joined.
 */
import { createHash } from "node:crypto";
import type { Dialect } from "@tito/format";
import type { ReplyEvent } from "../dialect/neutral.js";
import { type CutObject, sliceText } from "../json/slices.js";

/** A complete answer, in no dialect's spelling. */
export interface FinishedAnswer {
  callId: string;
  events: ReplyEvent[];
  reasoningKey: "reasoning" | "reasoning_content" | null;
}

/** A running call whose harness has gone. */
export interface Orphan {
  callId: string;
  /** Stops the grace timer: somebody waits for this call again. Returns what gives it up again. */
  adopt(): () => void;
  /** The finished answer, null when the call ended without one. */
  answer: Promise<FinishedAnswer | null>;
}

const SLOTS_MAX = 16;

/** Slots of one trajectory, oldest first; the oldest go when there are too many. */
export class ReplayTable {
  private readonly finished = new Map<string, FinishedAnswer[]>();
  private readonly orphans = new Map<string, Orphan[]>();
  private count = 0;

  keep(key: string, answer: FinishedAnswer): void {
    push(this.finished, key, answer);
    this.count += 1;
    while (this.count > SLOTS_MAX) {
      const [oldest] = this.finished.keys();
      this.takeFinished(oldest!);
    }
  }

  /** Takes the oldest undelivered answer of this key out of its slot. */
  takeFinished(key: string): FinishedAnswer | null {
    const answer = shift(this.finished, key);
    if (answer !== null) this.count -= 1;
    return answer;
  }

  addOrphan(key: string, orphan: Orphan): void {
    push(this.orphans, key, orphan);
  }

  /** True when it was still here: nobody had taken it. */
  removeOrphan(key: string, orphan: Orphan): boolean {
    const before = this.orphans.get(key) ?? [];
    const left = before.filter((one) => one !== orphan);
    if (left.length === 0) this.orphans.delete(key);
    else this.orphans.set(key, left);
    return left.length < before.length;
  }

  /** Takes a running call without a harness. */
  takeOrphan(key: string): Orphan | null {
    return shift(this.orphans, key);
  }
}

/** Fields that a harness changes between an attempt and its retry, without meaning another question. */
const VOLATILE = new Set(["stream", "stream_options", "client_metadata", "metadata"]);
/** Headers by which harnesses name a session. */
const SESSION_HEADERS = [
  "x-session-id",
  "session_id",
  "session-id",
  "thread-id",
  "x-session-affinity",
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
];

/**
 * The key under which a retry finds its first attempt: dialect, the body without volatile fields, and the Idempotency-Key, or, without one, the session
 * headers. Values keep their spelling: retries repeat it byte for byte. One Idempotency-Key with another body is another call (docs/decisions/0143).
 */
export function replayKey(dialect: Dialect, body: CutObject, headers: ReadonlyMap<string, readonly string[]>): string {
  const idempotency = headers.get("idempotency-key")?.[0];
  const hash = createHash("sha256").update(dialect);
  if (idempotency !== undefined) hash.update(`\0${idempotency}`);
  else for (const name of SESSION_HEADERS) hash.update(`\0${headers.get(name)?.join(",") ?? ""}`);
  const members = body.slices
    .filter((slice) => !VOLATILE.has(slice.key))
    .map((slice) => `${JSON.stringify(slice.key)}:${sliceText(body.text, slice)}`);
  return `${idempotency === undefined ? "body" : "key"}:${hash.update("\0").update(members.sort().join(",")).digest("base64")}`;
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

function shift<T>(map: Map<string, T[]>, key: string): T | null {
  const values = map.get(key);
  const value = values?.shift() ?? null;
  if (values?.length === 0) map.delete(key);
  return value;
}
