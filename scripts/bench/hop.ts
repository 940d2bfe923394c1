/**
 * What the sidecar adds to a call, against a bare node:http pipe in the same run: whole answers of 99 kB and small ones, one at a time (G1), and 200 calls
 * a second over 32 trajectories (G3). Each conversation runs on each route in turn; its first call, which opens a trajectory, is not counted.
 */
import { plainRoute, post, quantile, type Route, sidecarRoute } from "./proxy/calls.js";
import { type Call, conversation, LARGE, LONG, PROBE, SMALL } from "./proxy/conversation.js";
import { Bench } from "./proxy/programs.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const ROUNDS = 24;
const CALLS_PER_SECOND = 200;
const TRAJECTORIES = 32;
const LOAD_ROUNDS = 2;

/** Milliseconds of each call by route, one call at a time. */
async function oneAtATime(routes: readonly Route[], calls: readonly Call[]): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>(routes.map((route) => [route.name, []]));
  for (let round = -2; round < ROUNDS; round++) {
    for (const route of routes) {
      const n = `${calls[0]!.key}-${round + 2}`;
      for (const [index, call] of calls.entries()) {
        const { ms, bytes } = await post(route.url(n), call.request);
        if (bytes < 100) throw new Error(`${route.name}: an answer of ${bytes} bytes`);
        if (round >= 0 && index > 0) times.get(route.name)!.push(ms);
      }
      await route.end?.(n);
    }
  }
  return times;
}

function rowsOf(what: string, times: ReadonlyMap<string, number[]>, goals: ReadonlyMap<string, number>): Row[] {
  const direct = times.get("direct")!;
  const added = (name: string, share: number): number => quantile(times.get(name)!, share) - quantile(direct, share);
  const names = [...times.keys()].filter((name) => name !== "direct");
  return [
    { name: `${what}, direct, p50`, value: quantile(direct, 0.5), unit: "ms" },
    ...names.flatMap((name): Row[] => [
      ...[0.5, 0.95, 0.99].map((share) => ({
        name: `${what}, ${name}, added p${share * 100}`,
        value: added(name, share),
        unit: "ms",
      })),
      ...(name === "pipe"
        ? []
        : [
            {
              name: `${what}, ${name}, of the pipe's p50${goals.has(name) ? ` (goal ${goals.get(name)})` : ""}`,
              value: added(name, 0.5) / added("pipe", 0.5),
              unit: "ratio",
              ratioTo: "raw pipe",
            },
          ]),
    ]),
  ];
}

/** Calls at fixed moments, however long the earlier ones take; a conversation's own calls stay in order. */
async function underLoad(route: Route, calls: readonly Call[], round: number): Promise<number[]> {
  const names = Array.from({ length: TRAJECTORIES }, (_, index) => `load-${round}-${index}`);
  const turns = calls.slice(0, 26);
  const before = new Map<string, Promise<unknown>>();
  for (const name of names) await post(route.url(name), turns[0]!.request);
  const startedMs = performance.now();
  const count = (turns.length - 1) * names.length;
  const times = await Promise.all(
    Array.from({ length: count }, (_, index) => {
      const name = names[index % names.length]!;
      const call = turns[1 + Math.floor(index / names.length)]!;
      const dueMs = startedMs + (index * 1000) / CALLS_PER_SECOND;
      return new Promise<number>((done, fail) => {
        setTimeout(
          () => {
            const sent = (before.get(name) ?? Promise.resolve()).then(() => post(route.url(name), call.request));
            before.set(name, sent);
            sent.then(() => done(performance.now() - dueMs), fail);
          },
          Math.max(0, dueMs - performance.now()),
        );
      });
    }),
  );
  for (const name of names) await route.end?.(name);
  return times;
}

export async function run(): Promise<Row[]> {
  const bench = new Bench();
  try {
    const [large, small, long] = [conversation(LARGE), conversation(SMALL), conversation(LONG)];
    const engine = await bench.engine([...conversation(PROBE), ...large, ...small, ...long], { streamsIds: false });
    const direct = plainRoute("direct", engine);
    const pipe = plainRoute("pipe", (await bench.pipe(engine)).line);
    const written = sidecarRoute(
      "tito --durability write",
      (await bench.gateway(engine, ["--durability", "write"])).origin,
    );
    const synced = sidecarRoute("tito", (await bench.gateway(engine)).origin);
    const goals = new Map([
      [written.name, 1.75],
      [synced.name, 2.5],
    ]);
    const routes = [direct, pipe, written, synced];
    const rows = [
      { name: "answer in the middle of a conversation", value: large[8]!.body.length / 1000, unit: "kB" },
      ...rowsOf("99 kB answer", await oneAtATime(routes, large), goals),
      ...rowsOf("small answer", await oneAtATime(routes, small), new Map()),
    ];
    const load = new Map<string, number[]>([direct, pipe, synced].map((route) => [route.name, []]));
    for (let round = 0; round < LOAD_ROUNDS; round++)
      for (const route of [direct, pipe, synced]) load.get(route.name)!.push(...(await underLoad(route, long, round)));
    return [...rows, ...rowsOf("200 calls/s over 32 trajectories (goal: p99 4 ms)", load, new Map())];
  } finally {
    await bench.close();
  }
}
