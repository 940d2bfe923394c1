import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join, relative } from "node:path";
import { Command } from "commander";
import { afterAll, describe, expect, it, vi } from "vitest";
import { registerHarness } from "../../src/commands/harness.js";
import { HARNESSES } from "../../src/harness/registry.js";

const dir = mkdtempSync(join(tmpdir(), "tito-harness-command-"));
const endpoint = join(dir, "endpoint.json");
writeFileSync(
  endpoint,
  JSON.stringify({
    openai_base_url: "http://127.0.0.1:9/t/a/v1",
    anthropic_base_url: "http://127.0.0.1:9/t/a",
    api_key: "tito_k",
  }),
);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("tito harness", () => {
  it.each(HARNESSES)(
    "$name is told absolute paths, also of a relative --home: it is started elsewhere",
    async ({ name }) => {
      const print = vi.spyOn(console, "log").mockImplementation(() => undefined);
      const program = new Command();
      registerHarness(program, { exitCode: 0 });
      const home = relative(process.cwd(), join(dir, name));
      await program.parseAsync(["harness", name, "--endpoint", endpoint, "--home", home, "--json"], { from: "user" });
      const printed = JSON.parse(String(print.mock.lastCall?.[0])) as { files: string[]; env: Record<string, string> };
      print.mockRestore();
      for (const file of printed.files) expect(isAbsolute(file)).toBe(true);
      const paths = Object.values(printed.env).filter((value) => value.includes("tito-harness-command-"));
      expect(paths).not.toEqual([]);
      for (const path of paths) expect(isAbsolute(path)).toBe(true);
    },
  );
});
