/** OpenCode (opencode-ai), over chat completions through the Vercel AI SDK. */
import { join } from "node:path";
import { type HarnessAdapter, jsonFile, KEY_VARIABLE, PROVIDER } from "./adapter.js";

const CONFIG_FILE = ".config/opencode/opencode.json";

export const opencode: HarnessAdapter = {
  name: "opencode",
  dialect: "chat",
  install: "npm install -g opencode-ai@1.18.33",
  checkedVersion: "1.18.33",
  rules: "opencode",
  headerRules: [
    { header: "x-session-id", names: "session" },
    { header: "x-parent-session-id", names: "parent" },
  ],
  configure: ({ endpoint, model, home, contextTokens, outputTokens }) => ({
    files: [
      jsonFile(CONFIG_FILE, {
        $schema: "https://opencode.ai/config.json",
        autoupdate: false,
        share: "disabled",
        model: `${PROVIDER}/${model}`,
        small_model: `${PROVIDER}/${model}`,
        enabled_providers: [PROVIDER],
        permission: { "*": "allow" },
        provider: {
          [PROVIDER]: {
            npm: "@ai-sdk/openai-compatible",
            name: PROVIDER,
            options: { baseURL: endpoint.openai_base_url, apiKey: `{env:${KEY_VARIABLE}}` },
            models: {
              [model]: {
                name: model,
                tool_call: true,
                reasoning: true,
                limit: { context: contextTokens, output: outputTokens },
              },
            },
          },
        },
      }),
    ],
    env: {
      [KEY_VARIABLE]: endpoint.api_key,
      OPENCODE_CONFIG: join(home, CONFIG_FILE),
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_SHARE: "1",
    },
    argv: (prompt, options = {}) => [
      "opencode",
      "run",
      "--model",
      `${PROVIDER}/${model}`,
      ...(options.resume === true ? ["-c"] : []),
      ...(options.extraArgs ?? []),
      prompt,
    ],
  }),
  quirks: [
    "Wraps a prompt with spaces in literal quotes.",
    "Asks for a session title in a call of its own, at the same time as the first turn and under the same session id.",
    'Rewrites a call that does not parse, or whose tool it does not know, to the tool "invalid" with arguments of its own.',
    "After a stream that broke off behind a tool-call header, later requests hold an extra assistant turn that was never sampled so.",
    "compaction.prune replaces old tool results in the middle of the history.",
  ],
};
