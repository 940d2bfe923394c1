import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { z } from "zod";
import type { Engine } from "../engine.js";
import { badRequest, toApiError } from "../errors.js";
import { PAUSE_MODES, type PauseMode } from "../generate/traffic.js";
import type { Model } from "../lm/index.js";
import { readBodyText } from "./body.js";
import { type JsonBody, parseWith, readJsonBody } from "./json-body.js";

type App = Hono<{ Bindings: HttpBindings }>;
type EngineContext = Context<{ Bindings: HttpBindings }>;

const label = z.string().min(1).max(256);
const fromDiskSchema = z.object({
  model_path: z.string().min(1),
  weight_version: label.nullish(),
  abort_all_requests: z.boolean().nullish(),
});
const updateSchema = z.object({ update_info: z.object({ model_path: z.string().min(1) }) });
const finishSchema = z.object({ weight_version: label.nullish() });
const renameSchema = z.object({ new_version: label, abort_all_requests: z.boolean().nullish() });

/** The routes by which a trainer brings new weights: SGLang's one call, and vLLM's calls one after the other. */
export function addWeightRoutes(app: App, engine: Engine): void {
  app.post("/update_weights_from_disk", (c) => updateFromDisk(engine, c));
  app.post("/update_weight_version", (c) => renameWeights(engine, c));
  app.post("/pause", async (c) => {
    await engine.traffic.pause(pauseModeOf(c.req.query("mode")));
    return c.json({ status: "paused" });
  });
  app.post("/resume", (c) => {
    engine.traffic.resume();
    return c.json({ status: "resumed" });
  });
  app.get("/is_paused", (c) => c.json({ is_paused: engine.traffic.paused }));
  app.get("/get_world_size", (c) => c.json({ world_size: 1 }));
  app.post("/init_weight_transfer_engine", (c) => c.json({ message: "Weight transfer initialized" }));
  addTransferRoutes(app, engine);
}

/** vLLM's transfer: begin, bring, finish. The weights of a transfer are in use once it is finished, and not before. */
function addTransferRoutes(app: App, engine: Engine): void {
  let transfer: { brought: { model: Model; dir: string } | null } | null = null;
  app.post("/start_weight_update", (c) => {
    transfer = { brought: null };
    return c.json({ message: "Weight update started" });
  });
  app.post("/update_weights", async (c) => {
    const begun = transfer;
    if (begun === null) throw badRequest("no weight update was started");
    const dir = parseWith(updateSchema, await readBody(c)).update_info.model_path;
    begun.brought = null;
    begun.brought = { model: await engine.weights.read(dir), dir };
    return c.json({ message: "Weights updated" });
  });
  app.post("/finish_weight_update", async (c) => {
    const text = await readBodyText(c.env.incoming);
    const { weight_version } = parseWith(finishSchema, readJsonBody(text === "" ? "{}" : text));
    const brought = transfer?.brought;
    if (brought === undefined || brought === null) throw badRequest("no weights were brought since the update started");
    engine.weights.use(brought.model, brought.dir, weight_version ?? null);
    engine.history.forgetSequences();
    transfer = null;
    return c.json({ message: "Weight update finished" });
  });
}

/** SGLang's `POST /update_weights_from_disk`. Answers under way keep what they began with, or are aborted when the request says so. */
async function updateFromDisk(engine: Engine, c: EngineContext): Promise<Response> {
  try {
    const request = parseWith(fromDiskSchema, await readBody(c));
    const model = await engine.weights.read(request.model_path);
    const version = engine.weights.use(model, request.model_path, request.weight_version ?? null);
    engine.history.forgetSequences();
    const aborted = request.abort_all_requests === true ? engine.traffic.abortAll() : 0;
    const message = aborted === 0 ? "Succeeded to update model weights." : `Updated; ${aborted} requests were aborted.`;
    return c.json({ success: true, message, num_paused_requests: 0, weight_version: version });
  } catch (error) {
    return refused(c, error);
  }
}

/** SGLang's and vLLM's `POST /update_weight_version`: another label for the running weights. */
async function renameWeights(engine: Engine, c: EngineContext): Promise<Response> {
  try {
    const request = parseWith(renameSchema, await readBody(c));
    engine.weights.rename(request.new_version);
    if (request.abort_all_requests === true) engine.traffic.abortAll();
    const message = `Weight version updated to ${request.new_version}`;
    return c.json({ success: true, message, new_version: request.new_version });
  } catch (error) {
    return refused(c, error);
  }
}

/** A refusal in SGLang's shape. The running weights and their label are what they were. */
function refused(c: EngineContext, error: unknown): Response {
  return c.json({ success: false, message: toApiError(error).message, num_paused_requests: 0 }, 400);
}

async function readBody(c: EngineContext): Promise<JsonBody> {
  return readJsonBody(await readBodyText(c.env.incoming));
}

function pauseModeOf(mode: string | undefined): PauseMode {
  const known = PAUSE_MODES.find((one) => one === (mode ?? "abort"));
  if (known === undefined) throw badRequest(`mode must be one of ${PAUSE_MODES.join(", ")}`, "mode");
  return known;
}
