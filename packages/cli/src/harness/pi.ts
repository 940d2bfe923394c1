/** Pi (@earendil-works/pi-coding-agent), over chat completions. */
import { join } from "node:path";
import { type HarnessAdapter, jsonFile, KEY_VARIABLE, PROVIDER } from "./adapter.js";

const AGENT_DIR = ".pi/agent";
/** Pi's own defaults, made for windows of 128k: kept free for the answer, and kept verbatim behind a summary. */
const RESERVE_TOKENS = 16_384;
const KEEP_RECENT_TOKENS = 20_000;

export const pi: HarnessAdapter = {
  name: "pi",
  dialect: "chat",
  install:
    "npm install -g @earendil-works/pi-coding-agent@0.74.2 (Node 20), or @earendil-works/pi-coding-agent@1.6.0 (Node 22.19 or later)",
  checkedVersion: "0.74.2 and 1.6.0",
  rules: "pi",
  headerRules: [],
  configure: ({ endpoint, model, home, contextTokens, outputTokens }) => ({
    files: [
      jsonFile(`${AGENT_DIR}/models.json`, {
        providers: {
          [PROVIDER]: {
            baseUrl: endpoint.openai_base_url,
            api: "openai-completions",
            // A command, because 0.74 and 1.6 name a variable in different ways.
            apiKey: `!printenv ${KEY_VARIABLE}`,
            // Chat templates know the system role; developer is a name that only OpenAI's own models take.
            compat: { supportsDeveloperRole: false, supportsReasoningEffort: false, supportsStore: false },
            models: [
              {
                id: model,
                name: model,
                reasoning: true,
                input: ["text"],
                contextWindow: contextTokens,
                maxTokens: outputTokens,
                cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
              },
            ],
          },
        },
      }),
      jsonFile(`${AGENT_DIR}/settings.json`, {
        enableInstallTelemetry: false,
        // In a smaller window its defaults would leave no room at all, and it would never compact.
        compaction: {
          enabled: true,
          reserveTokens: Math.min(RESERVE_TOKENS, Math.max(outputTokens, Math.floor(contextTokens / 8))),
          keepRecentTokens: Math.min(KEEP_RECENT_TOKENS, Math.floor(contextTokens / 4)),
        },
      }),
    ],
    env: {
      [KEY_VARIABLE]: endpoint.api_key,
      PI_CODING_AGENT_DIR: join(home, AGENT_DIR),
      PI_OFFLINE: "1",
      PI_TELEMETRY: "0",
    },
    argv: (prompt, options = {}) => [
      "pi",
      "-p",
      "--provider",
      PROVIDER,
      "--model",
      model,
      ...(options.resume === true ? ["-c"] : []),
      ...(options.extraArgs ?? []),
      prompt,
    ],
  }),
  quirks: [
    "Echoes tool arguments after JSON.parse and JSON.stringify: spaces, escapes and big numbers of the sampled text are gone.",
    "Drops an assistant turn that holds reasoning only.",
    "0.74.2 compacts only between agent runs or after an overflow error; 1.6.0 also between tool turns.",
    "1.6.0 lowers max_completion_tokens as the window fills, and ends a run with exit code 0 and no output on an overflow error with -p.",
    "Summarisation calls carry no session header.",
  ],
};
