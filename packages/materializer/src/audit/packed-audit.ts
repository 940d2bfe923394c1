/**
 * The promises of packed rows, checked from what was read back: every part says whose it is and what it counts for, and agrees with the others
 * of its run. Pure.
 */
import type { Policy } from "../recipe/policy.js";
import { advantageOf, type ReadPacked } from "./read-output.js";

type Part = ReadPacked["parts"][number];

const TOLERANCE = 1e-9;

/** Takes packed rows one by one; {@link PackedAudit.end} compares the runs of a group. */
export class PackedAudit {
  private readonly runs = new Map<string, { part: Part; where: string; samples: Set<number>; weight: number }>();
  private rows = 0;
  samples = 0;
  tokens = 0;
  weight = 0;

  constructor(private readonly problem: (text: string) => void) {}

  row(row: ReadPacked, file: string): void {
    this.rows += 1;
    const where = `${file} packed row ${this.rows}`;
    const lengths = new Set([row.tokens, row.loss_mask, row.logprobs, row.position_ids].map((each) => each.length));
    if (lengths.size > 1) this.problem(`${where}: arrays differ in length`);
    let at = 0;
    for (const part of row.parts) {
      if (part.start !== at || part.end <= part.start) this.problem(`${where}: parts leave a hole or overlap at ${at}`);
      for (let i = part.start; i < part.end; i += 1) {
        if (row.position_ids[i] !== i - part.start)
          this.problem(`${where}: position ${i} does not start again at its part`);
      }
      at = part.end;
      this.part(part, `${where}, run ${part.run_id} sample ${part.sample}`);
    }
    if (at !== row.tokens.length) this.problem(`${where}: parts end at ${at} of ${row.tokens.length}`);
    this.tokens += row.tokens.length;
  }

  private part(part: Part, where: string): void {
    this.samples += 1;
    this.weight += part.weight;
    if (part.excluded !== null && (advantageOf(part) !== null || part.weight !== 0))
      this.problem(`${where}: excluded, and has an advantage or a weight`);
    const key = JSON.stringify([part.run_id, part.trial_id, part.attempt]);
    const known = this.runs.get(key);
    if (known === undefined) {
      this.runs.set(key, { part, where, samples: new Set([part.sample]), weight: part.weight });
      return;
    }
    if (known.samples.has(part.sample)) this.problem(`${where}: packed twice`);
    known.samples.add(part.sample);
    known.weight += part.weight;
    for (const name of ["group_id", "reward", "excluded"] as const) {
      if (part[name] !== known.part[name])
        this.problem(`${where}: ${name} ${part[name]}, and ${known.part[name]} in ${known.where}`);
    }
  }

  /** What only all rows together show: the weight of a run, and that equal rewards of a group have equal advantages. */
  end(policy: Policy): void {
    const advantages = new Map<string, { advantage: number; where: string }>();
    for (const { part, where, weight } of this.runs.values()) {
      if (policy.credit.weight === "run" && weight !== 0 && Math.abs(weight - 1) > TOLERANCE)
        this.problem(`${where}: the samples of its run weigh ${weight}`);
      const { advantage, reward } = part;
      if (policy.credit.rule !== "none" && part.excluded === null && reward !== null && advantageOf(part) === null)
        this.problem(`${where}: a reward of ${reward} and no advantage`);
      if (typeof advantage !== "number" || reward === null) continue;
      const key = JSON.stringify([part.group_id, reward]);
      const same = advantages.get(key);
      if (same === undefined) advantages.set(key, { advantage, where });
      else if (Math.abs(same.advantage - advantage) > TOLERANCE * Math.max(1, Math.abs(advantage)))
        this.problem(`${where}: advantage ${advantage}, and ${same.advantage} for the same reward in ${same.where}`);
    }
  }
}
