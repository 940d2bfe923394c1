/**
 * What the sidecar adds to each chunk of a stream, against a bare node:http pipe in the same run (G4): 300 chunks, 4 ms apart; each carries the moment at
 * which the engine sent it, on the clock that all processes of the machine share. The end of a stream, which waits for the record, is not counted.
 */
import { plainRoute, post, quantile, type Route, sidecarRoute } from "./proxy/calls.js";
import { conversation, PROBE } from "./proxy/conversation.js";
import { Bench } from "./proxy/programs.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

export const STREAM = {
  name: "stream",
  turns: 1,
  promptTokens: 2_000,
  sampledTokens: 300,
  gapTokens: 0,
  systemChars: 8_000,
};
export const CHUNK_MS = 4;
const ROUNDS = 9;
const SENT = /"sent":"(\d{18})"/g;

/** Milliseconds from the engine's write to our read, of each chunk but the last. */
export async function chunkDelays(url: string, request: Buffer): Promise<number[]> {
  const found: number[] = [];
  let rest = "";
  await post(url, request, (part) => {
    const now = process.hrtime.bigint();
    const text = rest + part.toString("latin1");
    const whole = text.lastIndexOf("\n\n") + 1;
    for (const [, sent] of text.slice(0, whole).matchAll(SENT)) found.push(Number(now - BigInt(sent!)) / 1e6);
    rest = text.slice(whole);
  });
  if (found.length !== STREAM.sampledTokens) throw new Error(`${found.length} chunks of ${STREAM.sampledTokens}`);
  return found.slice(0, -1);
}

export async function run(): Promise<Row[]> {
  const bench = new Bench();
  try {
    const [call] = conversation(STREAM, true);
    const engine = await bench.engine([...conversation(PROBE), call!], { streamsIds: true, chunkMs: CHUNK_MS });
    const routes: Route[] = [
      plainRoute("direct", engine),
      plainRoute("pipe", (await bench.pipe(engine)).line),
      sidecarRoute("tito", (await bench.gateway(engine)).origin),
    ];
    const times = new Map<string, number[]>(routes.map((route) => [route.name, []]));
    for (let round = -1; round < ROUNDS; round++) {
      for (const route of routes) {
        const of = await chunkDelays(route.url(`s-${round + 1}`), call!.request);
        if (round >= 0) times.get(route.name)!.push(...of);
        await route.end?.(`s-${round + 1}`);
      }
    }
    const direct = times.get("direct")!;
    const added = (name: string, share: number): number => quantile(times.get(name)!, share) - quantile(direct, share);
    return [
      ...["pipe", "tito"].flatMap((name) =>
        [0.5, 0.95, 0.99].map((share) => ({
          name: `${name}, added to a chunk, p${share * 100}${name === "tito" && share === 0.5 ? " (promise 0.2 ms, quiet)" : ""}`,
          value: added(name, share),
          unit: "ms",
        })),
      ),
      {
        name: "tito, of the pipe's p50 (goal 1.75)",
        value: added("tito", 0.5) / added("pipe", 0.5),
        unit: "ratio",
        ratioTo: "raw pipe",
      },
    ];
  } finally {
    await bench.close();
  }
}
