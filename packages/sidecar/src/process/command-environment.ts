/** The environment of COMMAND: it points at the sidecar and holds no key of the engine. */

import type { Endpoint } from "../config/endpoint.js";
import type { AgentUser } from "./agent-user.js";

/** Where keys of inference services usually stand. Whatever else holds the engine's key goes too. */
const KEY_VARIABLES = [
  "TITO_UPSTREAM_KEY",
  "VLLM_API_KEY",
  "SGLANG_API_KEY",
  "FIREWORKS_API_KEY",
  "TOGETHER_API_KEY",
  "OPENROUTER_API_KEY",
  "AZURE_OPENAI_API_KEY",
  "ANTHROPIC_AUTH_TOKEN",
];

export interface CommandPlace {
  endpoint: Endpoint;
  endpointFile: string;
  upstreamKey: string | null;
  user: AgentUser | null;
}

export function commandEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  place: CommandPlace,
): Record<string, string> {
  const { endpoint, endpointFile, upstreamKey, user } = place;
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      !KEY_VARIABLES.includes(entry[0]) &&
      (upstreamKey === null || !entry[1].includes(upstreamKey)),
  );
  return {
    ...Object.fromEntries(kept),
    ...(user === null ? {} : { HOME: user.home, USER: user.name, LOGNAME: user.name }),
    TITO_ENDPOINT_FILE: endpointFile,
    OPENAI_BASE_URL: endpoint.openai_base_url,
    OPENAI_API_BASE: endpoint.openai_base_url,
    OPENAI_API_KEY: endpoint.api_key,
    ANTHROPIC_BASE_URL: endpoint.anthropic_base_url,
    ANTHROPIC_API_KEY: endpoint.api_key,
  };
}
