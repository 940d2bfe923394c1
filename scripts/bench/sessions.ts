/** A rival's own benchmark (miles, session server): 32 sessions of 50 turns, each as fast as its answers come (G16); here with prompts of 8,000 ids in the middle. */
import { plainRoute, post, type Route, sidecarRoute } from "./proxy/calls.js";
import { conversation, LONG, PROBE } from "./proxy/conversation.js";
import { Bench } from "./proxy/programs.js";

const SESSIONS = 32;

export async function run(): Promise<{ name: string; value: number; unit: string; ratioTo?: string }[]> {
  const bench = new Bench();
  try {
    const calls = conversation(LONG);
    const engine = await bench.engine([...conversation(PROBE), ...calls], { streamsIds: false });
    const routes: Route[] = [
      plainRoute("pipe", (await bench.pipe(engine)).line),
      sidecarRoute("tito", (await bench.gateway(engine)).origin),
    ];
    const perSecond: Record<string, number> = {};
    for (const route of routes) {
      const startedMs = performance.now();
      await Promise.all(
        Array.from({ length: SESSIONS }, async (_, session) => {
          for (const call of calls) await post(route.url(`session-${session}`), call.request);
        }),
      );
      perSecond[route.name] = (SESSIONS * calls.length * 1000) / (performance.now() - startedMs);
      for (let session = 0; session < SESSIONS; session++) await route.end?.(`session-${session}`);
    }
    return [
      { name: "32 sessions x 50 turns, bare pipe", value: perSecond.pipe!, unit: "turns/s" },
      { name: "32 sessions x 50 turns, tito, durable", value: perSecond.tito!, unit: "turns/s" },
      {
        name: "tito, of miles' published 58 turns/s (other machine, heavier turns)",
        value: perSecond.tito! / 58,
        unit: "ratio",
        ratioTo: "published",
      },
    ];
  } finally {
    await bench.close();
  }
}
