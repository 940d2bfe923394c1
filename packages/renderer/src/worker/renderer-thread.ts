/** The renderer's thread: loads one bundle and answers requests in order. */
import { parentPort, workerData } from "node:worker_threads";
import { TitoError } from "@tito/format";
import { loadBundle } from "../bundle/load-bundle.js";
import type { LiveParser } from "../families/live-parser.js";
import { buildIncrementalPrompt } from "../junction/incremental-prompt.js";
import { PromptRenderer } from "../prompt-renderer.js";
import { type Request, type Response, WORKER_ROLE, type WorkerData } from "./protocol.js";

/** True in a thread that was started to be a renderer. */
export function isRendererThread(): boolean {
  return parentPort !== null && (workerData as Partial<WorkerData> | null)?.role === WORKER_ROLE;
}

/** Serves the parent until it closes. Only for a thread of which {@link isRendererThread} holds. */
export function runRendererThread(): void {
  const port = parentPort!;
  const { bundle_directory } = workerData as WorkerData;
  const opened = loadBundle(bundle_directory).then((bundle) => PromptRenderer.open(bundle));
  const live = new Map<number, LiveParser>();
  port.on("message", async (request: Request) => {
    let response: Response;
    try {
      response = { call: request.call, ok: true, value: serve(await opened, live, request) };
    } catch (error) {
      response = { call: request.call, ok: false, error: describe(error) };
    }
    port.postMessage(response, memoryOf(response));
  });
  opened.catch(() => undefined);
}

function serve(renderer: PromptRenderer, live: Map<number, LiveParser>, request: Request): unknown {
  switch (request.name) {
    case "open": {
      const { contractId, stopIds, familyName, model } = renderer;
      return { contract_id: contractId, stop_ids: [...stopIds], family: familyName, model };
    }
    case "render": {
      const { ids, special_text_escaped } = renderer.render(...request.args);
      // The renderer goes on in the memory of these ids: the parent gets a copy of its own.
      return { ids: ids.slice(), special_text_escaped };
    }
    case "count":
      return renderer.countTokens(...request.args);
    case "parse":
      return renderer.parse(...request.args);
    case "incremental":
      return buildIncrementalPrompt(renderer, ...request.args);
    case "decode":
      return renderer.decode(request.args[0]);
    case "live_open":
      live.set(request.args[0], renderer.liveParser(request.args[1]));
      return null;
    case "live_push":
      return live.get(request.args[0])!.push(request.args[1]);
    case "live_end": {
      const parser = live.get(request.args[0])!;
      live.delete(request.args[0]);
      return parser.end();
    }
  }
}

/** Memory that goes over to the parent instead of being copied once more. */
function memoryOf(response: Response): ArrayBuffer[] {
  const ids = response.ok ? (response.value as { ids?: unknown } | null)?.ids : undefined;
  return ids instanceof Int32Array ? [ids.buffer as ArrayBuffer] : [];
}

function describe(error: unknown): { code: TitoError["code"]; message: string; hint: string | undefined } {
  if (TitoError.is(error)) return { code: error.code, message: error.message, hint: error.hint };
  return { code: "internal", message: `the renderer failed: ${String(error)}`, hint: undefined };
}
