/** What of a record is kept while a trajectory is verified: what others are compared with, and of arrays only how long they are. */
import fs from "node:fs";
import path from "node:path";
import { FRAME_HEADER_BYTES } from "../frame/frame.js";
import type { RecordPlace } from "../read/trajectory-log.js";
import { TitoError } from "../record/errors.js";
import { decodeRecord, type NamedRecord } from "../record/record-codec.js";
import { type IntentRecord, RecordType, type TurnRecord } from "../record/records.js";

export function slimRecord(named: NamedRecord): NamedRecord {
  if (named.name === "turn") return { ...named, record: slimTurn(named.record) };
  return named.name === "intent" ? { ...named, record: slimIntent(named.record) } : named;
}

/** Only lengths are read of the arrays. */
function slimTurn(turn: TurnRecord): TurnRecord {
  const { prompt_suffix, sampled_ids, messages_new, tools, junction } = turn;
  return {
    ...turn,
    prompt_suffix: { length: prompt_suffix.length } as Int32Array,
    sampled_ids: { length: sampled_ids.length } as Int32Array,
    prompt_sha256: new Uint8Array(turn.prompt_sha256),
    tools_sha256: new Uint8Array(turn.tools_sha256),
    logprobs: null,
    logprob_gaps: [],
    sampling: {},
    messages_new: new Array(messages_new.length),
    tools: tools === null ? null : [],
    message: { role: "assistant" },
    junction: junction === null ? null : { ...junction, seam_ids: junction.seam_ids.slice() },
  };
}

function slimIntent(intent: IntentRecord): IntentRecord {
  const { body } = intent;
  return { ...intent, headers: {}, body: { ...body, deflate: new Uint8Array(0), sha256: new Uint8Array(0) } };
}

/** A turn that was walked over, once more. Throws `io` when it can not be read. */
export function readTurn(dir: string, { file, offset, bytes }: RecordPlace): TurnRecord {
  const payload = Buffer.alloc(bytes - offset - FRAME_HEADER_BYTES);
  const name = path.join(dir, file);
  let fd: number | null = null;
  try {
    fd = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
    fs.readSync(fd, payload, 0, payload.length, offset + FRAME_HEADER_BYTES);
  } catch (cause) {
    throw new TitoError("io", `${name}: ${(cause as Error).message}`, { cause });
  } finally {
    if (fd !== null) fs.closeSync(fd);
  }
  return decodeRecord(RecordType.turn, payload, `${file} offset ${offset}`)!.record as TurnRecord;
}
