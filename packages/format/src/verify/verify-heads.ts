/** Heads that a journal is said to have had: by anchors outside, by the segments of its boot, by the journal that followed it. */
import type { JournalHeader } from "../record/records.js";
import type { ExpectedHead, FileEnd } from "./verify-file.js";
import type { Findings, Severity } from "./verify-types.js";

/** A journal or segment file before it is walked: its header and where it says it belongs. */
export interface Opened<H> {
  file: string;
  header: H | null;
  /** There is no header because the writer died before it was whole. */
  torn: boolean;
}

/** Heads by the file that they are looked for in. One that may be in several files is met when one of them has it. */
export class ExpectedHeads {
  readonly all: ExpectedHead[] = [];
  private readonly byFile = new Map<string, Map<number, ExpectedHead[]>>();

  add(
    files: readonly string[],
    kind: ExpectedHead["kind"],
    head: { seq: number; digest: Uint8Array; bytes: number },
    witness: string,
  ): void {
    const expected: ExpectedHead = { ...head, kind, files, witness, met: false, replaced: false };
    this.all.push(expected);
    for (const file of files) {
      const heads = this.of(file);
      heads.set(head.seq, [...(heads.get(head.seq) ?? []), expected]);
    }
  }

  of(file: string): Map<number, ExpectedHead[]> {
    const heads = this.byFile.get(file) ?? new Map<number, ExpectedHead[]>();
    this.byFile.set(file, heads);
    return heads;
  }
}

export interface Journals {
  journals: readonly Opened<JournalHeader>[];
  ends: ReadonlyMap<string, FileEnd>;
  findings: Findings;
}

/**
 * The journals of which the one at `index` may follow one: the last with a header, since a boot that died inside its header left nothing to follow,
 * and those without that come after it, since they may have had one.
 */
export function journalsBefore(journals: readonly Opened<JournalHeader>[], index: number): Opened<JournalHeader>[] {
  const last = journals.slice(0, index).findLastIndex((item) => item.header !== null);
  return journals.slice(Math.max(0, last), index);
}

export function checkHeads(heads: readonly ExpectedHead[], seen: Journals): void {
  for (const head of heads) {
    if (head.met) continue;
    const { files, bytes, seq, kind, witness, replaced } = head;
    const place = { file: files[0] ?? "journal.seg", offset: bytes, seq };
    const what = replaced ? "there is another" : "it is not there";
    seen.findings.add(
      severityOf(head, seen),
      kind === "anchor" ? "anchor_missing" : "head_missing",
      place,
      `${witness} says that this record was here: ${what}`,
    );
  }
}

/** Tampered, unless the disk alone can have done it: then a record is never replaced, only missing at a journal's end or where bytes are damaged. */
function severityOf(head: ExpectedHead, { journals, ends }: Journals): Severity {
  if (head.replaced) return "tampered";
  const files = journals.filter((item) => head.files.includes(item.file));
  // which boot a journal without a header belonged to, and whether that boot synced anything, nobody can say
  const unknown = files.some((item) => item.header === null) || (head.files.length === 0 && hasHeaderless(journals));
  const found = files.map((item) => ends.get(item.file)!);
  if (unknown || found.some((end) => end.damaged)) return "damaged";
  if (files.length === 0 || found.some((end) => end.sealed)) return "tampered";
  // a later boot names what it read, and what it read may have been in memory only: written without syncs, or left there by a sync that failed
  if (head.kind === "earlier") return "damaged";
  return files.every((item) => item.header?.durability === "write") ? "damaged" : "tampered";
}

/** True when a journal lost its header: files of its boot can not be told from files of no boot. */
export function hasHeaderless(journals: readonly Opened<JournalHeader>[]): boolean {
  return journals.some((item) => item.header === null);
}

/** Each journal begins where the one before ended; only the process that wrote both may have left more in it. */
export function checkSuccession(heads: readonly ExpectedHead[], { journals, ends, findings }: Journals): void {
  const missed = new Set(heads.flatMap(({ kind, met, witness }) => (kind === "earlier" && !met ? [witness] : [])));
  journals.forEach((journal, index) => {
    const before = journalsBefore(journals, index)[0];
    const head = before === undefined ? null : ends.get(before.file)!.head;
    if (journal.header === null || !before?.header || head === null || missed.has(journal.file)) return;
    const { previous_head, boot_id } = journal.header;
    if (previous_head === null) {
      // a process that goes on because its journal broke before anything of it was durable
      if (boot_id === before.header.boot_id) return;
      const message = `it says that it is the first journal, and ${before.file} is there`;
      findings.addFile("tampered", "head_missing", journal.file, message);
    } else if (head.seq > previous_head.seq && boot_id !== before.header.boot_id) {
      const place = { file: before.file, offset: previous_head.bytes, seq: previous_head.seq + 1 };
      const message = `records were added after ${journal.file} was begun`;
      findings.add("tampered", "records_after_successor", place, message);
    }
  });
}
