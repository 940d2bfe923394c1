/** The prefix check of the continuity engine against a bare memory compare of the same ids, and what lineages and drift add to it. */
import {
  commit,
  commonPrefix,
  createState,
  decide,
  type EngineState,
  type EngineTurn,
} from "../../packages/continuity/src/index.js";

interface Row {
  name: string;
  value: number;
  unit: string;
  ratioTo?: string;
}

const IDS = 100_000;
const TURNS = 100;
const ROUNDS = 40;
const REPEATS = 20;

function turnOf(callId: string, prompt: Int32Array, sampled: Int32Array): EngineTurn {
  return {
    call_id: callId,
    prompt_ids: prompt,
    sampled_ids: sampled,
    checkpointable: true,
    lane: "main",
    messages: [],
    reply: { role: "assistant", content: callId },
    tools_sha256: "",
    renderer_contract: "",
    retry_of: null,
    harness: null,
    arrived_after: null,
  };
}

function noise(length: number, seed: number): Int32Array {
  let state = seed;
  return Int32Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) % 150_000;
  });
}

function record(state: EngineState, turn: EngineTurn): void {
  commit(state, turn, decide(state, turn), state.last_commit + 1);
}

/** One conversation of `TURNS` turns and `IDS` ids; the prompt of its next turn. */
function conversation(state: EngineState): Int32Array {
  const ids = noise(IDS, 1);
  const step = IDS / TURNS;
  for (let i = 0; i < TURNS; i++) {
    const cut = i * step + step / 2;
    record(state, turnOf(`t${i}`, ids.subarray(0, cut), ids.subarray(cut, (i + 1) * step)));
  }
  return ids;
}

/** Every turn drifts inside the reply before it: as many segments as turns. */
function driftingConversation(state: EngineState): Int32Array {
  let prompt = noise(IDS - TURNS * 100, 2);
  for (let i = 0; i < TURNS; i++) {
    record(state, turnOf(`d${i}`, prompt, noise(100, 1000 + i)));
    const next = new Int32Array(prompt.length + 100);
    next.set(prompt);
    next.set(noise(50, 1000 + i), prompt.length);
    next.set(noise(50, 5000 + i), prompt.length + 50);
    prompt = next;
  }
  return prompt;
}

/** Best time of each of several functions, their rounds interleaved so that the machine's load meets all alike. Microseconds. */
function bestOf<Name extends string>(functions: Record<Name, () => unknown>): Record<Name, number> {
  const names = Object.keys(functions) as Name[];
  const best = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY])) as Record<Name, number>;
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) {
      const start = performance.now();
      for (let i = 0; i < REPEATS; i++) functions[name]();
      best[name] = Math.min(best[name], ((performance.now() - start) * 1000) / REPEATS);
    }
  }
  return best;
}

/** Rows of `npm run bench prefix`. */
export async function run(): Promise<Row[]> {
  const linear = createState();
  const ids = conversation(linear);
  const drifting = createState();
  const drifted = driftingConversation(drifting);
  const copy = ids.slice();
  const left = Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength);
  const right = Buffer.from(copy.buffer);
  const next = turnOf("next", copy, new Int32Array(0));
  const nextDrifted = turnOf("next", drifted, new Int32Array(0));
  const best = bestOf({
    equals: () => left.equals(right),
    prefix: () => commonPrefix({ ids, start: 0 }, { ids: copy, start: 0 }, IDS),
    append: () => decide(linear, next),
    drift: () => decide(drifting, nextDrifted),
  });
  const against = "Buffer.equals";
  return [
    { name: "Buffer.equals, 100k ids", value: best.equals, unit: "µs" },
    { name: "common prefix, 100k ids", value: best.equals / best.prefix, unit: "speed", ratioTo: against },
    {
      name: "decide, append behind 100 turns and 100k ids",
      value: best.equals / best.append,
      unit: "speed",
      ratioTo: against,
    },
    {
      name: "decide, drift in each of 100 turns, 100k ids",
      value: best.equals / best.drift,
      unit: "speed",
      ratioTo: against,
    },
    { name: "decide, append behind 100 turns and 100k ids", value: best.append, unit: "µs" },
    { name: "decide, drift in each of 100 turns, 100k ids", value: best.drift, unit: "µs" },
  ];
}
