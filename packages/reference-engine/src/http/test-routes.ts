import { z } from "zod";
import type { Engine } from "../engine.js";
import { GAUGES } from "../faults/board.js";
import { queuedFaultSchema } from "../faults/schema.js";
import { parseWith, readJsonBody } from "./json-body.js";

const faultsSchema = z.object({ faults: z.array(queuedFaultSchema).min(1).max(1000) });
const versionSchema = z.object({ version: z.string().min(1).max(256) });
const waitSchema = z.object({ gauge: z.enum(GAUGES), atLeast: z.number().int().min(0) });

/** `POST /test/faults`: one fault, or `{faults: […]}`, appended to the queue. */
export function queueFaults(engine: Engine, bodyText: string): object {
  const body = readJsonBody(bodyText);
  const faults = body.fields.has("faults")
    ? parseWith(faultsSchema, body).faults
    : [parseWith(queuedFaultSchema, body)];
  engine.board.add(faults);
  return { pending: engine.board.pending() };
}

/** `POST /test/weight_version`: from the next token on. A label of other weights than the running ones is refused. */
export function setWeightVersion(engine: Engine, bodyText: string): object {
  engine.weights.relabel(parseWith(versionSchema, readJsonBody(bodyText)).version);
  return { weight_version: engine.weights.current.version.current };
}

/** `POST /test/wait`: answers once the gauge is high enough, so that tests need no sleep. */
export async function waitForGauge(engine: Engine, bodyText: string, signal: AbortSignal): Promise<object> {
  const { gauge, atLeast } = parseWith(waitSchema, readJsonBody(bodyText));
  await engine.board.until(gauge, atLeast, signal);
  return gauges(engine);
}

/** `GET /test/state`. */
export function gauges(engine: Engine): object {
  return Object.fromEntries(GAUGES.map((gauge) => [gauge, engine.board.value(gauge)]));
}
