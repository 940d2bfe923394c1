/**
 * Resident memory under 200 calls a second for ten minutes (G13; TITO_STEADY_S for another time): at most twice the idle process, and flat. Rollouts of 50 turns
 * come and go, 32 at a time; what they leave on disk is removed. By hand, and a part of `npm run check:full`.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { post, sidecarRoute } from "./proxy/calls.js";
import { conversation, LONG, PROBE } from "./proxy/conversation.js";
import { Bench, residentMib } from "./proxy/programs.js";

/** Not one of those that `npm run bench` runs without a name. */
export const byHand = true;

// biome-ignore lint/suspicious/noUndeclaredEnvVars: no variable of the build
const SECONDS = Number(process.env.TITO_STEADY_S ?? 600);
const TRAJECTORIES = 32;
const CALLS_PER_SECOND = 200;

/** Growth in MiB a minute: the least-squares line through the second half of the samples. */
function slope(samples: readonly { s: number; mib: number }[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  const mean = (of: (sample: { s: number; mib: number }) => number): number =>
    half.reduce((sum, sample) => sum + of(sample), 0) / half.length;
  const [s, mib] = [mean((sample) => sample.s), mean((sample) => sample.mib)];
  const over = half.reduce((sum, sample) => sum + (sample.s - s) * (sample.mib - mib), 0);
  return (60 * over) / half.reduce((sum, sample) => sum + (sample.s - s) ** 2, 0);
}

export async function run(): Promise<{ name: string; value: number; unit: string; ratioTo?: string }[]> {
  const bench = new Bench();
  try {
    const calls = conversation(LONG);
    const engine = await bench.engine([...conversation(PROBE), ...calls], { streamsIds: false });
    const { origin, out, program } = await bench.gateway(engine);
    const route = sidecarRoute("tito", origin);
    const idle = residentMib(program.child.pid!);
    const samples: { s: number; mib: number }[] = [];
    const startedMs = performance.now();
    const seconds = (): number => (performance.now() - startedMs) / 1000;
    let sent = 0;
    const sampler = setInterval(() => samples.push({ s: seconds(), mib: residentMib(program.child.pid!) }), 1000);
    await Promise.all(
      Array.from({ length: TRAJECTORIES }, async (_, lane) => {
        for (let rollout = 0; seconds() < SECONDS; rollout++) {
          const name = `lane-${lane}-${rollout}`;
          for (const call of calls) {
            const dueS = sent++ / CALLS_PER_SECOND;
            if (dueS > seconds()) await new Promise((due) => setTimeout(due, (dueS - seconds()) * 1000));
            await post(route.url(name), call.request);
          }
          await route.end?.(name);
          rmSync(join(out, name), { recursive: true, force: true });
        }
      }),
    );
    const took = seconds();
    clearInterval(sampler);
    const most = Math.max(...samples.map(({ mib }) => mib));
    return [
      { name: "calls", value: sent, unit: "calls" },
      { name: "calls a second", value: sent / took, unit: "calls/s" },
      { name: "idle", value: idle, unit: "MiB" },
      { name: "most under load", value: most, unit: "MiB" },
      { name: "most, of idle (goal 2)", value: most / idle, unit: "ratio", ratioTo: "idle" },
      { name: "growth in the second half (goal 0)", value: slope(samples), unit: "MiB/min" },
    ];
  } finally {
    await bench.close();
  }
}
