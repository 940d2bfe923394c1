/** Mini-SWE-Agent, over chat completions through LiteLLM, never streaming. */
import { join } from "node:path";
import { type HarnessAdapter, jsonFile, KEY_VARIABLE } from "./adapter.js";

const CONFIG_DIR = ".config/mini-swe-agent";
// YAML is a superset of JSON; the harness goes by the ending.
const CONFIG_FILE = `${CONFIG_DIR}/tito.yaml`;

export const miniSweAgent: HarnessAdapter = {
  name: "mini-swe-agent",
  dialect: "chat",
  install: "pip install mini-swe-agent==2.4.6",
  checkedVersion: "2.4.6",
  rules: "mini-swe-agent",
  headerRules: [],
  configure: ({ endpoint, model, home, outputTokens }) => ({
    files: [
      jsonFile(CONFIG_FILE, {
        model: {
          model_name: `openai/${model}`,
          cost_tracking: "ignore_errors",
          model_kwargs: { api_base: endpoint.openai_base_url, max_tokens: outputTokens, drop_params: true },
        },
        agent: { mode: "yolo", confirm_exit: false, cost_limit: 0 },
      }),
    ],
    env: {
      [KEY_VARIABLE]: endpoint.api_key,
      MSWEA_GLOBAL_CONFIG_DIR: join(home, CONFIG_DIR),
      MSWEA_CONFIGURED: "true",
      MSWEA_SILENT_STARTUP: "1",
      MSWEA_COST_TRACKING: "ignore_errors",
      // LiteLLM would fetch a price list at start.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    },
    argv: (prompt, options = {}) => [
      "mini",
      "-y",
      "--exit-immediately",
      "-c",
      "mini.yaml",
      "-c",
      join(home, CONFIG_FILE),
      "-o",
      join(home, CONFIG_DIR, "last-run.traj.json"),
      ...(options.extraArgs ?? []),
      "-t",
      prompt,
    ],
  }),
  quirks: [
    "Never streams: an answer reaches it as a whole body.",
    "Ends a run only when a command prints COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; an answer without a call is told to make one.",
    "Has no sessions: every run starts anew.",
  ],
};
