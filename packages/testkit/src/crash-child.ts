/**
 * The process that the crash loop kills. It records turns as fast as it can and notes in its own log where it is:
 * P id (making the record) · I id (writing it) · W id (written, waiting for the sync) · R id digest (released: a harness would see the answer).
 * `node crash-child.js OUT LOG BOOT SEED`. The log is written with write(2), so that it survives the kill as a client's own memory would.
 */
import fs from "node:fs";
import type { TrajectoryWriter, TurnRecord } from "@tito/format";
import { seededRandom } from "./seeded-random.js";
import { concat, ids, intent, openWriter, turn } from "./turns.js";

const LINE_TOKENS_MAX = 400_000;
const SEGMENTS_MAX = 4;

async function main(out: string, logFile: string, boot: string, seed: number): Promise<void> {
  const log = fs.openSync(logFile, "a");
  const note = (text: string): void => void fs.writeSync(log, `${text}\n`);
  const random = seededRandom(seed);
  const writer = await openWriter(out);
  const lines = recoverLines(writer);
  process.stdout.write("ready\n");
  for (let n = 1; ; n++) {
    const callId = `${boot}-${n}`;
    note(`P ${callId}`);
    writer.writeIntent(intent(callId, `{"call":"${callId}","pad":"${"x".repeat(random() * 2000)}"}`));
    const known = [...lines.keys()];
    const opens = known.length === 0 || (known.length < SEGMENTS_MAX && random() < 0.2);
    const segment = opens ? writer.nextSegment : known[Math.floor(random() * known.length)]!;
    const line = lines.get(segment) ?? new Int32Array(0);
    const record = makeTurn(callId, line, random);
    note(`I ${callId}`);
    const committed = writer.commitTurn({ ...(opens ? { open: { parent: null } } : { segment }), turn: record });
    note(`W ${callId}`);
    const { file, commit } = await committed;
    note(`R ${callId} ${commit} ${file} ${Buffer.from(record.prompt_sha256).toString("hex")}`);
    lines.set(segment, lineAfter(record, line));
    writer.writeDelivery({ call_id: callId, outcome: "delivered", bytes: 1, status: 200, detail: null, at_ms: 1 });
    const pause = Date.now() + random() * 4;
    while (Date.now() < pause) await new Promise(setImmediate);
  }
}

function recoverLines(writer: TrajectoryWriter): Map<number, Int32Array> {
  const lines = new Map<number, Int32Array>();
  for (const { segment } of writer.recovered?.log.segments ?? []) {
    const line = writer.recovered!.lines.line(segment);
    if (line !== null) lines.set(segment, line);
  }
  return lines;
}

/** A turn of 1 kB to 2 MB that extends the line, or begins it anew when it grew too long. */
function makeTurn(callId: string, line: Int32Array, random: () => number): TurnRecord {
  const size = Math.floor(20 * 8000 ** random());
  const base = line.length > LINE_TOKENS_MAX ? new Int32Array(0) : line;
  const prompt = concat(base, ids(Math.floor(random() * 1e6), size));
  const sampled = ids(Math.floor(random() * 1e6), Math.ceil(size / 4));
  return turn(callId, prompt, sampled, base.length);
}

function lineAfter(record: TurnRecord, line: Int32Array): Int32Array {
  return concat(concat(line.slice(0, record.prompt_keep), record.prompt_suffix), record.sampled_ids);
}

const [out, logFile, boot, seed] = process.argv.slice(2);
if (out !== undefined && logFile !== undefined && boot !== undefined) await main(out, logFile, boot, Number(seed));
