/** Worker threads of the built package: the output does not depend on their number. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { materialize, type Progress } from "../../src/jobs/materialize.js";
import { loadPolicy } from "../../src/recipe/policy.js";

const job = resolve(import.meta.dirname, "..", "..", "..", "..", "fixtures", "trajectories", "job-1");
const root = mkdtempSync(join(tmpdir(), "tito-jobs-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("--jobs", () => {
  it.each(["jsonl", "parquet", "msgpack"])(
    "gives the same %s bytes and manifest with 1 and with 3 threads",
    async (format) => {
      const policy = loadPolicy("select: {max_version_age: 1}");
      const [one, three] = [join(root, `one.${format}`), join(root, `three.${format}`)];
      const a = await materialize({ paths: [job], out: one, policy, jobs: 1 });
      const b = await materialize({ paths: [job], out: three, policy, jobs: 3 });
      expect(readFileSync(three).equals(readFileSync(one))).toBe(true);
      const named = (report: typeof a) => ({
        ...report.manifest,
        outputs: report.manifest.outputs.map(({ path: _path, ...rest }) => rest),
      });
      expect(named(b)).toEqual(named(a));
      expect(a.manifest.newest_version).toBe(9);
    },
  );

  it("packs the same rows with any number of threads", async () => {
    const policy = loadPolicy(null, { packMaxTokens: 40 });
    const [one, three] = [join(root, "one-packed.jsonl"), join(root, "three-packed.jsonl")];
    await materialize({ paths: [job], out: one, policy });
    await materialize({ paths: [job], out: three, policy, jobs: 3 });
    expect(readFileSync(three).equals(readFileSync(one))).toBe(true);
  });

  it("reports progress through every phase, in order and to the end", async () => {
    const seen: Progress[] = [];
    await materialize({
      paths: [job],
      out: join(root, "progress.jsonl"),
      jobs: 2,
      onProgress: (each) => seen.push({ ...each }),
    });
    expect([...new Set(seen.map((each) => each.phase))]).toEqual(["find", "survey", "write"]);
    expect(seen.at(-1)).toEqual({ phase: "write", done: 7, total: 7, tokens: expect.any(Number) });
  });
});
