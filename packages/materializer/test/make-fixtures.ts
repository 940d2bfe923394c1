/**
 * `node --import tsx packages/materializer/test/make-fixtures.ts trajectories|goldens|schema`: writes what is committed.
 * `goldens` after a change that is meant to change outputs; `trajectories` only for a new format version.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { materialize } from "../src/materialize.js";
import { loadPolicy } from "../src/policy.js";
import { rolloutRunJsonSchema } from "../src/rollout-run.js";
import { GOLDEN_POLICIES, writeFixtureJob } from "./fixture-job.js";

const fixtures = resolve(import.meta.dirname, "..", "..", "..", "fixtures", "trajectories");
const job = join(fixtures, "job-1");

switch (process.argv[2]) {
  case "trajectories":
    rmSync(job, { recursive: true, force: true });
    await writeFixtureJob(job);
    break;
  case "goldens":
    for (const [name, yaml] of Object.entries(GOLDEN_POLICIES)) {
      const out = join(fixtures, "goldens", `${name}.jsonl`);
      await materialize({ paths: [job], out, policy: loadPolicy(yaml) });
    }
    await materialize({ paths: [job], out: join(fixtures, "goldens", "default.parquet") });
    await materialize({ paths: [job], out: join(fixtures, "goldens", "default.msgpack") });
    break;
  case "schema": {
    const file = resolve(import.meta.dirname, "..", "schema", "rollout-run.v1.schema.json");
    writeFileSync(file, `${JSON.stringify(rolloutRunJsonSchema(), null, 2)}\n`);
    break;
  }
  default:
    console.error("what: trajectories, goldens or schema");
    process.exit(64);
}
