/** `tito bundle` and `tito certify` as their users run them: the built command, the demo's own model files. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const TITO = resolve(import.meta.dirname, "../dist/main.js");
const POLICY = resolve(import.meta.dirname, "../../../fixtures/policy");
const TOKENIZER = join(POLICY, "tokenizer.json");
const TEMPLATE = join(POLICY, "chat_template.jinja");
const dir = mkdtempSync(join(tmpdir(), "tito-bundle-cli-"));

async function tito(...args: string[]) {
  const run = await execa(process.execPath, [TITO, ...args], { cwd: dir, reject: false, stdin: "ignore" });
  return { exitCode: run.exitCode, stdout: String(run.stdout), stderr: String(run.stderr) };
}

const bundle = (...rest: string[]) => tito("bundle", "--from", TOKENIZER, "--template", TEMPLATE, ...rest);

/** A file in the temporary directory. */
function file(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

let good: { contract: string; manifest: { family: string; date: string; files: Record<string, { bytes: number }> } };

beforeAll(async () => {
  const made = await bundle("--family", "demo", "--out", "good", "--date", "2026-11-30", "--json");
  expect(made).toMatchObject({ exitCode: 0, stderr: "" });
  const told = JSON.parse(made.stdout);
  good = { contract: told.renderer_contract, manifest: told.manifest };
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe("tito bundle", () => {
  it("makes the files that the manifest names and tells contract and manifest as JSON", () => {
    expect(good.contract).toMatch(/^bundle:[0-9a-f]{64}$/);
    expect(good.manifest).toMatchObject({ family: "demo", date: "2026-11-30" });
    expect(readdirSync(join(dir, "good")).sort()).toEqual(
      [...Object.keys(good.manifest.files), "manifest.json"].sort(),
    );
    expect(JSON.parse(readFileSync(join(dir, "good/manifest.json"), "utf8"))).toEqual(good.manifest);
  });

  it("says in words what it made and what comes next, and gives the same contract for the same files", async () => {
    const { exitCode, stdout } = await bundle("--family", "demo", "--out", "again", "--date", "2026-11-30");
    expect(exitCode).toBe(0);
    expect(stdout).toContain(good.contract);
    expect(stdout).toContain("ranks.txt");
    expect(stdout).toContain("Next: tito certify again");
  });

  it("takes tokenizer and template from a model directory, and template arguments into the contract", async () => {
    cpSync(POLICY, join(dir, "model"), { recursive: true });
    const args = ["--family", "demo", "--out", "from-dir", "--template-arg", "enable_thinking=false", "--json"];
    const { exitCode, stdout } = await tito("bundle", "--from", "model", ...args);
    expect(exitCode).toBe(0);
    const told = JSON.parse(stdout);
    expect(told.manifest.template_arguments).toEqual({ enable_thinking: false });
    expect(told.renderer_contract).not.toBe(good.contract);
  });

  it("takes Kimi's tiktoken.model with the named tokens of tokenizer_config.json", async () => {
    const kimi = join(dir, "kimi");
    mkdirSync(kimi);
    const line = (_: unknown, byte: number) => `${Buffer.of(byte).toString("base64")} ${byte}`;
    writeFileSync(join(kimi, "tiktoken.model"), `${Array.from({ length: 256 }, line).join("\n")}\n`);
    const decoder = { 256: { content: "<|im_end|>" }, 257: { content: "<|im_user|>" } };
    writeFileSync(join(kimi, "tokenizer_config.json"), JSON.stringify({ added_tokens_decoder: decoder }));
    writeFileSync(join(kimi, "chat_template.jinja"), "{{ messages[0].content }}<|im_end|>");
    expect(await tito("bundle", "--from", "kimi", "--family", "kimi-k2", "--out", "kimi-bundle")).toMatchObject({
      exitCode: 0,
    });
    const { split, added_tokens } = JSON.parse(readFileSync(join(dir, "kimi-bundle/tokenizer.json"), "utf8"));
    expect(split).toBe("kimi");
    expect(added_tokens).toEqual([
      { id: 256, text: "<|im_end|>", special: true, second_pass: false },
      { id: 257, text: "<|im_user|>", special: true, second_pass: false },
    ]);
    writeFileSync(join(kimi, "tiktoken.model"), "not a rank\n");
    const broken = await tito("bundle", "--from", "kimi", "--family", "kimi-k2", "--out", "kimi-broken");
    expect(broken.stderr).toContain('line 1 is not "base64 rank"');
    expect(broken.exitCode).toBe(65);
  });

  it("lists itself in the help, with every option", async () => {
    const { exitCode, stdout } = await tito("bundle", "--help");
    expect(exitCode).toBe(0);
    for (const option of ["--from", "--family", "--out", "--template", "--date", "--template-arg", "--json"])
      expect(stdout).toContain(option);
  });

  it.each([
    ["a missing flag", ["--out", "x"], 64, "--family"],
    ["an unknown family", ["--family", "gpt-9", "--out", "x"], 64, 'no model family is called "gpt-9"'],
    ["a tokenizer that is not there", ["--family", "demo", "--out", "x", "--from", "nowhere.json"], 66, "nowhere.json"],
    ["a template that is not there", ["--family", "demo", "--out", "x", "--template", "no.jinja"], 66, "no.jinja"],
    ["a date that is none", ["--family", "demo", "--out", "x", "--date", "today"], 64, "YYYY-MM-DD"],
    [
      "a template argument without a value",
      ["--family", "demo", "--out", "x", "--template-arg", "a="],
      64,
      "--template-arg",
    ],
    ["a directory that is there", ["--family", "demo", "--out", "good"], 73, "is there already"],
  ])("%s: one clear line, its exit code, nothing half-made", async (_name, args, exitCode, words) => {
    const failed = await bundle(...args);
    expect(failed.stderr).toContain(words);
    expect(failed.stderr).not.toContain("internal error");
    expect(failed.exitCode).toBe(exitCode);
    expect(readdirSync(dir).filter((name) => name === "x" || name.includes("partial"))).toEqual([]);
  });

  it("an unknown family lists those that are known; with --json as JSON", async () => {
    const { stderr } = await bundle("--family", "gpt-9", "--out", "x", "--json");
    expect(JSON.parse(stderr).error).toMatchObject({ code: "unsupported", hint: expect.stringContaining("qwen3") });
  });

  it("a template with a syntax error is refused where it is, not at the first request", async () => {
    const template = file("broken.jinja", "{% for m in messages %}{{ m.content }");
    const { exitCode, stderr } = await bundle("--family", "demo", "--out", "x", "--template", template);
    expect(stderr).toContain("template");
    expect(stderr).not.toContain("internal error");
    expect(exitCode).toBe(65);
    expect(existsSync(join(dir, "x"))).toBe(false);
  });

  it("a model directory whose configuration is broken is refused; one without a template says how to pass it", async () => {
    mkdirSync(join(dir, "plain"));
    cpSync(TOKENIZER, join(dir, "plain/tokenizer.json"));
    writeFileSync(join(dir, "plain/tokenizer_config.json"), "{ not JSON");
    const broken = await tito("bundle", "--from", "plain", "--family", "demo", "--out", "x");
    expect(broken).toMatchObject({
      exitCode: 65,
      stderr: expect.stringContaining("tokenizer_config.json is not JSON"),
    });
    writeFileSync(join(dir, "plain/tokenizer_config.json"), "{}");
    const without = await tito("bundle", "--from", "plain", "--family", "demo", "--out", "x");
    expect(without).toMatchObject({ exitCode: 64, stderr: expect.stringContaining("--template FILE") });
  });

  it.each([
    ["no JSON", "{", 65, "not JSON"],
    ["no BPE", JSON.stringify({ model: { type: "Unigram" }, added_tokens: [] }), 64, "Unigram"],
    ["empty", "null", 64, "model missing"],
    ["without a vocabulary", JSON.stringify({ model: { type: "BPE", merges: [] } }), 65, "no vocabulary"],
  ])("a tokenizer file that is %s is refused", async (_name, text, exitCode, words) => {
    const failed = await bundle("--family", "demo", "--out", "x", "--from", file("other.json", text));
    expect(failed.stderr).toContain(words);
    expect(failed.stderr).not.toContain("internal error");
    expect(failed.exitCode).toBe(exitCode);
  });
});

describe("tito certify", () => {
  it("writes the certificate into the bundle and tells the same as JSON", async () => {
    const { exitCode, stdout } = await tito("certify", "good", "--conversations", "4", "--json");
    expect(exitCode).toBe(0);
    const told = JSON.parse(stdout);
    expect(told.bundle).toBe(good.contract);
    expect(Object.keys(told.shapes)).toContain("tool_result");
    expect(JSON.parse(readFileSync(join(dir, "good/certificate.json"), "utf8"))).toEqual(told);
  });

  it("says in words which shapes hold; --out puts the certificate elsewhere; the same seed gives the same one", async () => {
    const args = ["--conversations", "4", "--seed", "1", "--out", "elsewhere.json"];
    const { exitCode, stdout } = await tito("certify", "good", ...args);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("tool_result");
    expect(stdout).toContain(good.contract);
    expect(stdout).toContain("written to elsewhere.json");
    expect(readFileSync(join(dir, "elsewhere.json"), "utf8")).toBe(
      readFileSync(join(dir, "good/certificate.json"), "utf8"),
    );
  });

  it("ends with 1 where no shape holds, and says why", async () => {
    const template = file("endless.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
    expect(await bundle("--family", "demo", "--out", "endless", "--template", template)).toMatchObject({ exitCode: 0 });
    const { exitCode, stdout } = await tito("certify", "endless", "--conversations", "2");
    expect(stdout).toContain("no shape is certified");
    expect(stdout).toContain("does not end the turn with a stop id");
    expect(exitCode).toBe(1);
  });

  it("refuses a bundle that does not match its manifest, and writes nothing", async () => {
    cpSync(join(dir, "again"), join(dir, "edited"), { recursive: true });
    writeFileSync(join(dir, "edited/template.jinja"), "{{ messages }}");
    const { exitCode, stderr } = await tito("certify", "edited");
    expect(stderr).toContain("template.jinja is not the file that the bundle's manifest names");
    expect(exitCode).toBe(65);
    expect(existsSync(join(dir, "edited/certificate.json"))).toBe(false);
  });

  it.each([
    ["a directory that is no bundle", ["."], 65, "manifest.json"],
    ["a directory that is not there", ["nowhere"], 65, "nowhere"],
    ["no bundle named", [], 64, "bundle"],
    ["a count that is none", ["good", "--conversations", "0"], 64, "--conversations"],
    [
      "a certificate that cannot be written",
      ["good", "--conversations", "1", "--out", "no/such/place.json"],
      73,
      "place.json",
    ],
  ])("%s: one clear line and its exit code", async (_name, args, exitCode, words) => {
    const failed = await tito("certify", ...args);
    expect(failed.stderr).toContain(words);
    expect(failed.stderr).not.toContain("internal error");
    expect(failed.exitCode).toBe(exitCode);
  });

  it("tells the exit codes in its help", async () => {
    const { exitCode, stdout } = await tito("certify", "--help");
    expect(exitCode).toBe(0);
    expect(stdout).toContain("1 none is");
  });
});
