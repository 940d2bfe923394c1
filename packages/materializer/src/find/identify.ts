/** The ids of a trajectory and the time in which it was recorded. I/O edge. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readManifest, readRecords, TitoError } from "@tito/format";
import { isForbidden, readIdentity } from "../read/read.js";
import type { Identified, Lived } from "./run-source.js";

/** What {@link runsOf} needs of a trajectory directory. Cheap until its time is asked for. */
export function identify(dir: string): Identified {
  let lived: Lived | null | undefined;
  const ask = (): Lived | null => {
    if (lived === undefined) lived = unlessForbidden(() => readLived(dir));
    return lived;
  };
  return { dir, ...readIdentity(dir), lived: ask };
}

/**
 * From the first boot to the seal or the last record of a call; null when nothing can be read. An imported log was written at another time
 * than its calls were made: there the calls alone tell.
 */
function readLived(dir: string): Lived | null {
  const seal = sealOf(dir);
  const imported = seal?.reason === "imported";
  const times = journalTimes(dir);
  const first = imported ? times.calls : [...times.boots, ...times.calls];
  if (first.length === 0) return null;
  const last = imported ? times.calls : [...first, ...times.ends, ...(seal === null ? [] : [seal.ms])];
  const bound = (values: readonly number[], pick: (a: number, b: number) => number) =>
    values.reduce((a, b) => pick(a, b));
  return { first_ms: bound(first, Math.min), last_ms: bound(last, Math.max) };
}

/** What this user may not read is told by the evidence. */
function unlessForbidden<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isForbidden(error)) return null;
    throw error;
  }
}

function sealOf(dir: string): { reason: string; ms: number } | null {
  try {
    const manifest = readManifest(dir);
    return manifest === null ? null : { reason: manifest.seal_reason, ms: manifest.sealed_ms };
  } catch (error) {
    if (TitoError.is(error)) return null;
    throw error;
  }
}

function journalTimes(dir: string): { boots: number[]; calls: number[]; ends: number[] } {
  const times = { boots: [] as number[], calls: [] as number[], ends: [] as number[] };
  for (const name of readdirSync(dir).filter((each) => each.endsWith(".seg"))) {
    for (const item of readRecords(join(dir, name), name, { mode: "tail" })) {
      if (item.kind !== "record") break;
      const { named } = item;
      if (named.name === "journal_header") times.boots.push(named.record.created_ms);
      else if (named.name === "intent") times.calls.push(named.record.received_ms);
      else if (named.name === "delivery" || named.name === "uncaptured") times.ends.push(named.record.at_ms);
    }
  }
  return times;
}
