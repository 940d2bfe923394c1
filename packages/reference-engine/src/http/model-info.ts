import type { Engine } from "../engine.js";

/** `GET /v1/models`: the one model, with the length of its context. */
export function listModels(engine: Engine): object {
  return {
    object: "list",
    data: [
      {
        id: engine.options.model,
        object: "model",
        created: engine.startedAt,
        owned_by: "vllm",
        root: engine.weights.current.dir,
        parent: null,
        max_model_len: engine.maxModelLen,
        permission: [],
      },
    ],
  };
}

/** `GET /weight_info`. */
export function weightInfo(engine: Engine): object {
  return { weight_version: engine.weights.current.version.current };
}
