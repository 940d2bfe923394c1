/** Claude Code (@anthropic-ai/claude-code), over Anthropic Messages. */
import { join } from "node:path";
import type { HarnessAdapter } from "./adapter.js";

const CONFIG_DIR = ".claude";

/** The smallest window that it believes. Below, compaction is moved forward within that window instead. */
const WINDOW_TOKENS_MIN = 100_000;
/** Share of the real window at which it compacts when the window is smaller than that; the rest is for the answer. */
const COMPACT_AT_PERCENT = 80;

export const claudeCode: HarnessAdapter = {
  name: "claude-code",
  dialect: "messages",
  install: "npm install -g @anthropic-ai/claude-code@2.1.332",
  checkedVersion: "2.1.332",
  rules: "claude",
  headerRules: [
    { header: "x-claude-code-session-id", names: "session" },
    { header: "x-claude-code-agent-id", names: "sub_agent" },
  ],
  configure: ({ endpoint, model, home, contextTokens, outputTokens }) => ({
    // Everything it needs comes from its environment; the directory it fills by itself.
    files: [],
    env: {
      ANTHROPIC_BASE_URL: endpoint.anthropic_base_url,
      ANTHROPIC_API_KEY: endpoint.api_key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_SMALL_FAST_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      CLAUDE_CODE_SUBAGENT_MODEL: model,
      ...compactionEnv(contextTokens),
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(outputTokens),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      CLAUDE_CONFIG_DIR: join(home, CONFIG_DIR),
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      DISABLE_AUTOUPDATER: "1",
      // It refuses to skip permissions as root unless told that it runs in a sandbox.
      IS_SANDBOX: "1",
    },
    argv: (prompt, options = {}) => [
      "claude",
      ...(options.resume === true ? ["-c"] : []),
      "--dangerously-skip-permissions",
      ...(options.extraArgs ?? []),
      "-p",
      prompt,
    ],
  }),
  quirks: [
    "Believes no window below 100000 tokens; for a smaller one its compaction threshold is lowered instead.",
    "Moves its cache_control mark and flips messages between string and block form; neither reaches the prompt.",
    "Sends a system message inside the list, after the first user message.",
    "Sends results of parallel calls in the order in which they finished.",
    "The billing line at the start of its system text changes with the first message of a session.",
    "After an error inside a stream it asks again at once without streaming.",
    "Asks up to three times to go on when an answer is cut by its length; each time the cut answer stays in its history.",
    "Keeps some tools deferred: they join the prompt where a tool result refers to them.",
  ],
};

function compactionEnv(contextTokens: number): Record<string, string> {
  const window = Math.max(contextTokens, WINDOW_TOKENS_MIN);
  const env = { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(window) };
  if (window === contextTokens) return env;
  const percent = Math.max(1, Math.floor((COMPACT_AT_PERCENT * contextTokens) / window));
  return { ...env, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: String(percent) };
}
