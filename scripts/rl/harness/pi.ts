/** Real Pi, through its own SDK: one session a rollout, in this process. */
import {
  AuthStorage,
  type CreateAgentSessionOptions,
  createAgentSession,
  createExtensionRuntime,
  ModelRegistry,
  type ResourceLoader,
  SessionManager,
  SettingsManager,
  type ToolDefinition,
} from "@earendil-works/pi-coding-agent";
import { DEMO_TOOLS, SYSTEM_PROMPT } from "@tito/reference-engine";
import { CALLS_MAX, type Harness, type Play, type Transcript, type TranscriptMessage } from "./rollout.js";
import { useTool } from "./tools.js";

const PROVIDER = "tito";

/** No skills, templates, themes or context files of the user's: what the model sees is what the task needs. */
const RESOURCES: ResourceLoader = {
  getExtensions: () => ({ extensions: [], errors: [], runtime: createExtensionRuntime() }),
  getSkills: () => ({ skills: [], diagnostics: [] }),
  getPrompts: () => ({ prompts: [], diagnostics: [] }),
  getThemes: () => ({ themes: [], diagnostics: [] }),
  getAgentsFiles: () => ({ agentsFiles: [] }),
  getSystemPrompt: () => SYSTEM_PROMPT,
  getAppendSystemPrompt: () => [],
  extendResources: () => {},
  reload: async () => {},
};

/** Plays one rollout in a Pi session that lives for it alone. */
export const playPi: Harness = async (play) => {
  const authStorage = AuthStorage.inMemory();
  authStorage.setRuntimeApiKey(PROVIDER, play.apiKey);
  const { session } = await createAgentSession({
    cwd: play.directory,
    model: modelAt(play.baseUrl),
    thinkingLevel: "off",
    authStorage,
    modelRegistry: ModelRegistry.inMemory(authStorage),
    resourceLoader: RESOURCES,
    tools: DEMO_TOOLS.map((tool) => tool.function.name),
    customTools: piTools(play),
    sessionManager: SessionManager.inMemory(play.directory),
    settingsManager: SettingsManager.inMemory({ compaction: { enabled: false }, retry: { enabled: false } }),
  });
  const abort = () => void session.abort();
  play.signal.addEventListener("abort", abort, { once: true });
  let calls = 0;
  session.subscribe((event) => {
    if (event.type === "turn_end" && ++calls === CALLS_MAX) abort();
  });
  try {
    await session.prompt(play.prompt);
    play.signal.throwIfAborted();
    return transcriptOf(session.systemPrompt, session.messages);
  } finally {
    play.signal.removeEventListener("abort", abort);
    session.dispose();
  }
};

function modelAt(baseUrl: string): NonNullable<CreateAgentSessionOptions["model"]> {
  return {
    id: "policy",
    name: "policy",
    api: "openai-completions",
    provider: PROVIDER,
    baseUrl,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 2048,
    maxTokens: 64,
    compat: { supportsDeveloperRole: false, supportsReasoningEffort: false, supportsStore: false },
  };
}

function piTools({ files }: Play): ToolDefinition[] {
  return DEMO_TOOLS.map((tool) => ({
    name: tool.function.name,
    label: tool.function.name,
    description: tool.function.description,
    parameters: tool.function.parameters as unknown as ToolDefinition["parameters"],
    execute: async (_id: string, args: unknown) => ({
      content: [{ type: "text" as const, text: useTool(tool.function.name, args as Record<string, unknown>, files) }],
      details: {},
    }),
  }));
}

type PiMessage = Awaited<ReturnType<typeof createAgentSession>>["session"]["messages"][number];

function transcriptOf(systemPrompt: string, messages: readonly PiMessage[]): Transcript {
  const plain = { reasoning: null, toolCalls: [] };
  return [
    { role: "system", content: systemPrompt, ...plain },
    ...messages.flatMap((message): TranscriptMessage[] => {
      switch (message.role) {
        case "user":
          return [{ role: "user", content: textOf(message.content), ...plain }];
        case "toolResult":
          return [{ role: "tool", content: textOf(message.content), ...plain }];
        case "assistant":
          // Cut off by the limit of calls: nothing of it was used.
          return message.stopReason === "aborted" ? [] : [assistantOf(message)];
        default:
          return [];
      }
    }),
  ];
}

function assistantOf(message: Extract<PiMessage, { role: "assistant" }>): TranscriptMessage {
  if (message.stopReason === "error") throw new Error(`Pi gave up: ${message.errorMessage}`);
  const thoughts = message.content.flatMap((part) => (part.type === "thinking" ? [part.thinking] : []));
  const text = textOf(message.content);
  return {
    role: "assistant",
    content: text === "" ? null : text,
    reasoning: thoughts.length === 0 ? null : thoughts.join(""),
    toolCalls: message.content.flatMap((part) =>
      part.type === "toolCall" ? [{ name: part.name, arguments: part.arguments }] : [],
    ),
  };
}

function textOf(content: string | readonly { type: string; text?: string }[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
}
