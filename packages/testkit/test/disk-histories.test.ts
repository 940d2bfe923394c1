import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { LIMITS, type VerifyStatus, verifyTrajectory } from "@tito/format";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type HistoryReport, historyKey, liveHistory } from "../src/disk-history.js";
import { seededRandom } from "../src/seeded-random.js";
import { tamper } from "../src/tamper.js";

const parent = fs.mkdtempSync(path.join(os.tmpdir(), "tito-histories-"));
const { openSegmentsMax } = LIMITS;
// so that files are parked in a short life too
beforeAll(() => void Object.assign(LIMITS, { openSegmentsMax: 3 }));
afterAll(() => {
  Object.assign(LIMITS, { openSegmentsMax });
  fs.rmSync(parent, { recursive: true, force: true });
});

const runs = Number(process.env.TITO_RUNS ?? 60);
/** The lives that follow from here; among them is one whose last file is taken away. Others: `npm run check:full fresh-seeds`. */
const seed = Number(process.env.TITO_SEED ?? 980_632);
const options = { timeout: 60_000 + runs * 500 };

describe("faults, kills and power cuts, in random lives of several boots,", () => {
  it(
    "cost nothing that was released, no anchored head, and are never called tampered; an edit after them never passes",
    options,
    async () => {
      console.log(`histories: TITO_SEED=${seed} TITO_RUNS=${runs}`);
      const violations: string[] = [];
      const totals = { boots: 0, released: 0, sealed: 0, edits: 0 };
      for (let run = 0; run < runs; run++) {
        const out = fs.mkdtempSync(path.join(parent, "run-"));
        const report = await liveHistory(out, seed + run);
        totals.boots += report.boots;
        totals.released += report.released;
        totals.sealed += Number(report.sealed);
        violations.push(...report.violations.map((text) => `seed ${seed + run}: ${text}`));
        const edit = tamper(path.join(out, "t1"), seededRandom(seed + run));
        if (edit !== null) {
          totals.edits++;
          const status = statusOf(out, report);
          if (status === "complete")
            violations.push(`seed ${seed + run}: ${report.steps.join(" → ")}, then ${edit}: complete`);
        }
        fs.rmSync(out, { recursive: true });
      }
      console.log(JSON.stringify(totals));
      expect(violations.slice(0, 5)).toEqual([]);
      expect(totals.released).toBeGreaterThan(runs);
      expect(totals.edits).toBeGreaterThan(runs / 4);
    },
  );
});

function statusOf(out: string, { allAnchors, keyed }: HistoryReport): VerifyStatus {
  const key = keyed ? { hmacKey: historyKey() } : {};
  return verifyTrajectory(path.join(out, "t1"), { anchors: allAnchors, ...key }).status;
}
