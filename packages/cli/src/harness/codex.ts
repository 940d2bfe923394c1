/** Codex CLI (@openai/codex), over OpenAI Responses. */
import { join } from "node:path";
import { type HarnessAdapter, KEY_VARIABLE, PROVIDER } from "./adapter.js";

const CODEX_HOME = ".codex";

export const codex: HarnessAdapter = {
  name: "codex",
  dialect: "responses",
  install: "npm install -g @openai/codex@0.171.0",
  checkedVersion: "0.171.0",
  rules: "codex",
  headerRules: [
    { header: "session-id", names: "session" },
    { header: "thread-id", names: "sub_agent" },
    { header: "x-codex-parent-thread-id", names: "parent" },
    { header: "x-codex-turn-metadata", names: "turn" },
  ],
  configure: ({ endpoint, model, home, contextTokens, outputTokens }) => ({
    files: [
      {
        path: `${CODEX_HOME}/config.toml`,
        content: configToml(endpoint.openai_base_url, model, {
          contextTokens,
          compactAtTokens: compactAt(contextTokens, outputTokens),
        }),
      },
    ],
    env: { [KEY_VARIABLE]: endpoint.api_key, CODEX_HOME: join(home, CODEX_HOME) },
    argv: (prompt, options = {}) => [
      "codex",
      "exec",
      ...(options.resume === true ? ["resume", "--last"] : []),
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      // Each of these would look for something on the network.
      ...["plugins", "apps", "skill_search", "tool_suggest"].flatMap((feature) => ["--disable", feature]),
      ...(options.extraArgs ?? []),
      prompt,
    ],
  }),
  quirks: [
    "An answer that is cut by its length ends the run with exit code 1, and so does an overflow error: it compacts by the token counts it is told, and its limits are set so that it does in time.",
    "Opens a connection per request and closes it right after response.completed: that is a delivery, not an abort.",
    "Acts on every output item as it is finished; completed items of a stream that broke off stay in its history.",
    "Sends tool arguments back verbatim, even when they are not JSON.",
    "client_metadata has another key order in every request.",
    "Retries a broken stream up to five times, but not a 429 without Retry-After.",
    "Drops the readable reasoning text and echoes encrypted_content, where the sidecar keeps that text.",
  ],
};

/** Codex cuts a tool result at 10,000 bytes, which are as many tokens at most. */
const TOOL_RESULT_TOKENS_MAX = 10_000;

/** Codex ends a run on an overflow error, so that it must compact before one can come: below its limit, a tool result and an answer must still fit. */
function compactAt(contextTokens: number, outputTokens: number): number {
  return Math.max(Math.floor(contextTokens / 2), contextTokens - outputTokens - TOOL_RESULT_TOKENS_MAX);
}

function configToml(
  baseUrl: string,
  model: string,
  window: { contextTokens: number; compactAtTokens: number },
): string {
  const text = (value: string) => tomlString(value);
  return `model = ${text(model)}
model_provider = ${text(PROVIDER)}
model_context_window = ${window.contextTokens}
model_auto_compact_token_limit = ${window.compactAtTokens}
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[feedback]
enabled = false

[history]
persistence = "none"

[otel]
exporter = "none"

[model_providers.${PROVIDER}]
name = ${text(PROVIDER)}
base_url = ${text(baseUrl)}
env_key = ${text(KEY_VARIABLE)}
wire_api = "responses"
`;
}

/** A TOML basic string: JSON's escapes, and U+007F, which TOML also wants escaped. */
function tomlString(value: string): string {
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
