/**
 * `npm run crash-loop -- --kills 2000 [--seed N]` (or TITO_SEED): kills a recording process at random moments and checks that nothing it released is lost.
 * Exit 1 when a promise was broken or a kind of moment was hardly hit.
 */
import { parseArgs } from "node:util";
import { runCrashLoop } from "../packages/testkit/src/crash-loop.js";

const { values } = parseArgs({ options: { kills: { type: "string", default: "200" }, seed: { type: "string" } } });
const kills = Number(values.kills);
const seed = Number(values.seed ?? process.env.TITO_SEED ?? 1);
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed)) {
  console.error("crash-loop: --kills and --seed are whole numbers");
  process.exit(64);
}
console.log(`${kills} kills, seed ${seed}`);
const report = await runCrashLoop({
  kills,
  seed,
  onProgress(done, { violations }) {
    if (done % 50 === 0) console.log(`${done} kills, ${violations.length} violations`);
  },
});
const hit = Object.entries(report.places).map(([place, count]) => ({ place, count, share: count / report.kills }));
for (const { place, count, share } of hit)
  console.log(`${place.padEnd(28)} ${String(count).padStart(6)}  ${(share * 100).toFixed(1)} %`);
console.log(
  `${report.released} turns were released, ${report.tornTails} torn tails were read, ${report.violations.length} violations`,
);
for (const violation of report.violations.slice(0, 20)) console.error(violation);
const rare = hit.filter(({ place, share }) => place !== "while opening" && share < 0.05);
for (const { place } of rare) console.error(`fewer than 5 % of the kills fell ${place}`);
process.exit(report.violations.length > 0 || rare.length > 0 ? 1 : 0);
