/** Which adapter serves an engine: the one that was named, or the one whose name the engine's list of models bears. */
import type { SidecarConfig } from "../config/config.js";
import { asObject, asString } from "../json/narrow.js";
import type { EngineAdapter, EngineTarget } from "./adapter.js";
import { fireworks } from "./fireworks.js";
import { openLlamacpp } from "./llamacpp.js";
import { sglang } from "./sglang.js";
import { openVllm, vllm } from "./vllm.js";

type Wanted = SidecarConfig["engine"];

/** `sendsIds`: prompt ids will be sent. An engine that says nothing of itself is taken for one with vLLM's shapes, and refused by the probe when it has them not. */
export async function chooseAdapter(wanted: Wanted, target: EngineTarget, sendsIds: boolean): Promise<EngineAdapter> {
  switch (wanted === "auto" ? ownerOf(target.modelEntry) : wanted) {
    case "sglang":
      return sglang;
    case "fireworks":
      return fireworks;
    case "llamacpp":
      return openLlamacpp(target);
    default:
      return sendsIds ? openVllm(target) : vllm(false);
  }
}

/** llama-server, SGLang, Fireworks and vLLM write their name there. */
function ownerOf(modelEntry: string): string {
  const owner = asString(asObject(JSON.parse(modelEntry))?.owned_by) ?? "";
  return owner.toLowerCase().replace(/[^a-z]/g, "");
}
