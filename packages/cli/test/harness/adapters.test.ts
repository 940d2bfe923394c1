import { HARNESS_RULES } from "@tito/continuity";
import { describe, expect, test } from "vitest";
import type { HarnessTarget } from "../../src/harness/adapter.js";
import { findHarness, HARNESSES } from "../../src/harness/registry.js";

const target: HarnessTarget = {
  endpoint: {
    openai_base_url: "http://127.0.0.1:4123/t/t1/v1",
    anthropic_base_url: "http://127.0.0.1:4123/t/t1",
    api_key: "tito_secret",
  },
  model: 'org/mo"del',
  home: "/home/agent",
  contextTokens: 32_000,
  outputTokens: 4_000,
};

describe.each(HARNESSES)("$name", (adapter) => {
  const setup = adapter.configure(target);

  test("points at the sidecar and never writes the key into a file", () => {
    const everything = JSON.stringify(setup);
    expect(everything).toContain("http://127.0.0.1:4123/t/t1");
    expect(Object.values(setup.env)).toContain("tito_secret");
    expect(JSON.stringify(setup.files)).not.toContain("tito_secret");
    expect(JSON.stringify(setup.argv("p"))).not.toContain("tito_secret");
  });

  test("the prompt is one argument, the last one, whatever it holds", () => {
    const prompt = "fix 'it'; rm -rf $HOME\n-- --help";
    expect(setup.argv(prompt).at(-1)).toBe(prompt);
    expect(setup.argv(prompt, { extraArgs: ["--x"] })).toContain("--x");
  });

  test("JSON files are JSON, and all paths are below home", () => {
    for (const file of setup.files) {
      expect(file.path).not.toMatch(/^\/|\.\./);
      if (!file.path.endsWith(".toml")) expect(() => JSON.parse(file.content)).not.toThrow();
    }
  });

  test("its lane rules exist", () => {
    expect(HARNESS_RULES.map((rules) => rules.harness)).toContain(adapter.rules);
    expect(adapter.quirks.length).toBeGreaterThan(0);
    expect(adapter.install).toContain(adapter.checkedVersion.split(" ")[0]!);
  });
});

describe("what each is told", () => {
  const fileOf = (name: string) => findHarness(name).configure(target).files[0]!.content;
  const json = (name: string) => JSON.parse(fileOf(name)) as unknown;

  test("Pi: provider, window and no developer role", () => {
    expect(json("pi")).toMatchObject({
      providers: {
        tito: {
          baseUrl: target.endpoint.openai_base_url,
          api: "openai-completions",
          compat: { supportsDeveloperRole: false },
          models: [{ id: target.model, contextWindow: 32_000, maxTokens: 4_000 }],
        },
      },
    });
  });

  test("Pi: compaction fits a window that is smaller than its defaults", () => {
    const settings = (contextTokens: number) =>
      JSON.parse(findHarness("pi").configure({ ...target, contextTokens }).files[1]!.content) as { compaction: object };
    expect(settings(131_072).compaction).toMatchObject({ reserveTokens: 16_384, keepRecentTokens: 20_000 });
    expect(settings(16_000).compaction).toMatchObject({ reserveTokens: 4_000, keepRecentTokens: 4_000 });
  });

  test("OpenCode: provider, window, all tools allowed", () => {
    expect(json("opencode")).toMatchObject({
      model: `tito/${target.model}`,
      permission: { "*": "allow" },
      provider: {
        tito: {
          options: { baseURL: target.endpoint.openai_base_url },
          models: { [target.model]: { limit: { context: 32_000, output: 4_000 } } },
        },
      },
    });
  });

  test("Mini-SWE-Agent: LiteLLM model and base address", () => {
    expect(json("mini-swe-agent")).toMatchObject({
      model: {
        model_name: `openai/${target.model}`,
        model_kwargs: { api_base: target.endpoint.openai_base_url, max_tokens: 4_000 },
      },
    });
  });

  test("Codex: TOML with the model name escaped", () => {
    const toml = fileOf("codex");
    expect(toml).toContain('model = "org/mo\\"del"\n');
    expect(toml).toContain("model_context_window = 32000\n");
    // An answer of 4000 tokens and a tool result of 10000 fit behind what is not compacted yet.
    expect(toml).toContain("model_auto_compact_token_limit = 18000\n");
    expect(toml).toContain('base_url = "http://127.0.0.1:4123/t/t1/v1"\n');
    expect(toml).toContain('wire_api = "responses"\n');
  });

  test("Claude Code: base address without /v1, every model name the policy's", () => {
    const { env } = findHarness("claude-code").configure(target);
    expect(env.ANTHROPIC_BASE_URL).toBe("http://127.0.0.1:4123/t/t1");
    const models = Object.entries(env).filter(([key]) => key.endsWith("MODEL"));
    expect(models.length).toBeGreaterThan(4);
    for (const [, value] of models) expect(value).toBe(target.model);
  });

  test("Claude Code: a window below what it believes lowers the compaction threshold", () => {
    const envOf = (contextTokens: number) => findHarness("claude-code").configure({ ...target, contextTokens }).env;
    expect(envOf(200_000)).toMatchObject({ CLAUDE_CODE_AUTO_COMPACT_WINDOW: "200000" });
    expect(envOf(200_000)).not.toHaveProperty("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE");
    expect(envOf(32_000)).toMatchObject({
      CLAUDE_CODE_AUTO_COMPACT_WINDOW: "100000",
      CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: "25",
    });
  });

  test("resume is the harness's own", () => {
    expect(findHarness("pi").configure(target).argv("p", { resume: true })).toContain("-c");
    expect(findHarness("codex").configure(target).argv("p", { resume: true }).slice(0, 4)).toEqual([
      "codex",
      "exec",
      "resume",
      "--last",
    ]);
  });
});

test("an unknown name is refused with the list", () => {
  expect(() => findHarness("vim")).toThrow(/no harness is called "vim"/);
});
