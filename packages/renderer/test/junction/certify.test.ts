import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@tito/format";
import { describe, expect, it } from "vitest";
import { loadBundle } from "../../src/bundle/load-bundle.js";
import { makeBundle } from "../../src/bundle/make-bundle.js";
import { FAMILIES } from "../../src/families/families.js";
import { type Certificate, certificateId, readCertificate, verifyCertificate } from "../../src/junction/certificate.js";
import { certify } from "../../src/junction/certify.js";
import { buildIncrementalPrompt, type IncrementalRequest } from "../../src/junction/incremental-prompt.js";
import { PromptRenderer } from "../../src/prompt-renderer.js";
import { joinIds } from "../../src/tokenizer/tokenizer.js";
import { openByteRenderer, templatePath } from "../byte-bundles.js";
import { VOCABULARIES, vocabularyMissing } from "../vocabularies.js";

const USER: Message = { role: "user", content: "List." };
const CALL = { id: "c1", name: "bash", arguments: '{"command":"ls"}' };
const REPLY: Message = { role: "assistant", content: null, tool_calls: [CALL] };
const RESULT: Message = { role: "tool", tool_call_id: "c1", content: "a.txt" };

/** A turn as the policy sampled it: not as the template would spell it again. */
function request(
  renderer: PromptRenderer,
  sampledText: string,
  over: Partial<IncrementalRequest> = {},
): IncrementalRequest {
  const prompt = renderer.render([USER], []).ids;
  const checkpoint = joinIds([prompt, renderer.tokenizer.encode(sampledText)]);
  return {
    checkpoint,
    end: "stop",
    malformed: false,
    history: [USER],
    reply: REPLY,
    suffix: [RESULT],
    tools: [],
    ...over,
  };
}

const SAMPLED = '<tool_call>\n{"name":"bash",  "arguments":{"command":"ls"}}\n</tool_call><|im_end|>';

describe("a certificate", () => {
  it.each(Object.keys(FAMILIES))("says for %s which shapes hold and why others do not", async (family) => {
    const renderer = await openByteRenderer(family);
    const certificate = certify(renderer, { conversations: 6, seed: 3 });
    const named = [...Object.keys(certificate.shapes), ...certificate.refused.map((refusal) => refusal.shape)];
    expect(new Set(named).size).toBe(8);
    for (const shape of Object.values(certificate.shapes)) expect(shape.conversations).toBe(6);
    expect(readCertificate(JSON.stringify(certificate))).toEqual(certificate);
    expect(certify(renderer, { conversations: 6, seed: 3 })).toEqual(certificate);
  });

  it.each([
    "demo",
    "qwen3",
    "qwen3.5",
    "glm-4.6",
    "glm-4.7",
    "glm-5",
    "glm-5.3",
    "kimi-k2",
    "kimi-k3",
    "deepseek-v3.1",
    "deepseek-v3.2",
    "deepseek-v4",
    "minimax-m2",
    "minimax-m3",
  ])("certifies the tool loop of %s", async (family) => {
    const { shapes } = certify(await openByteRenderer(family), { conversations: 6, seed: 4 });
    expect(shapes.tool_result?.conversations).toBe(6);
    expect(shapes.parallel_results?.conversations).toBe(6);
  });

  it("refuses a new user turn after reasoning where the template then drops it", async () => {
    const { refused } = certify(await openByteRenderer("qwen3"), { conversations: 6 });
    expect(refused.find((refusal) => refusal.shape === "user_turn_after_reasoning")?.why).toMatch(
      /rewrites history|drops or rewrites/,
    );
  });

  it("holds only for its own bundle and renderer version", async () => {
    const renderer = await openByteRenderer("demo");
    const certificate = certify(renderer, { conversations: 2 });
    expect(() => verifyCertificate(certificate, renderer.contractId)).not.toThrow();
    expect(() => verifyCertificate(certificate, "bundle:other")).toThrow(/is about/);
    expect(() => verifyCertificate({ ...certificate, renderer_version: "0" }, renderer.contractId)).toThrow(/version/);
    expect(() => verifyCertificate({ ...certificate, shapes: {} }, renderer.contractId)).toThrow(/no shape/);
    expect(() => readCertificate('{"schema":"x"}')).toThrow(/schema/);
  });
});

describe("the incremental prompt", () => {
  const prepare = async (family = "qwen3") => {
    const renderer = await openByteRenderer(family);
    return { renderer, certificate: certify(renderer, { conversations: 4 }) };
  };

  it("keeps the checkpoint's own tokens and adds the template's line break as a seam (Qwen)", async () => {
    const { renderer, certificate } = await prepare();
    const asked = request(renderer, SAMPLED);
    const built = buildIncrementalPrompt(renderer, certificate, asked);
    if ("fallback" in built) throw new Error(built.detail);
    expect(built.ids.slice(0, asked.checkpoint.length)).toEqual(asked.checkpoint);
    expect(renderer.decode(built.seam_ids)).toBe("\n");
    expect(built.kind).toBe("tool_result");
    expect(built.certificate).toBe(certificateId(certificate));
    expect(renderer.decode(built.ids.slice(asked.checkpoint.length))).toBe(
      "\n<|im_start|>user\n<tool_response>\na.txt\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("neither loses nor doubles a sampled role token (GLM), and falls back when the wrong role was sampled", async () => {
    const { renderer, certificate } = await prepare("glm-4.6");
    const call =
      "\n<think></think>\n<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>";
    const right = buildIncrementalPrompt(renderer, certificate, request(renderer, `${call}<|observation|>`));
    if ("fallback" in right) throw new Error(right.detail);
    expect(renderer.decode(right.ids).split("<|observation|>").length).toBe(2);
    const wrong = buildIncrementalPrompt(renderer, certificate, request(renderer, `${call}<|user|>`));
    expect(wrong).toMatchObject({ fallback: "stop_mismatch" });
  });

  it("puts the missing end of turn into the seam when sampling was cut by length", async () => {
    const { renderer, certificate } = await prepare();
    const reply: Message = { role: "assistant", content: "It is" };
    const next: Message = { role: "user", content: "go on" };
    const built = buildIncrementalPrompt(
      renderer,
      certificate,
      request(renderer, "It is", { reply, suffix: [next], end: "length" }),
    );
    if ("fallback" in built) throw new Error(built.detail);
    expect(renderer.decode(built.seam_ids)).toBe("<|im_end|>\n");
    expect(built.ids).toEqual(renderer.render([USER, reply, next], []).ids);
  });

  it("O.124 joins behind a cut turn with reasoning only where a user message leaves reasoning in place", async () => {
    const reply: Message = { role: "assistant", reasoning: "Long", content: "It is" };
    const over: Partial<IncrementalRequest> = { reply, suffix: [{ role: "user", content: "go on" }], end: "length" };
    const dropping = await prepare();
    const sampled = "<think>\nLong\n</think>\n\nIt is";
    expect(
      buildIncrementalPrompt(dropping.renderer, dropping.certificate, request(dropping.renderer, sampled, over)),
    ).toMatchObject({ fallback: "not_certified", detail: expect.stringContaining("user_turn_after_reasoning") });
    const keeping = await prepare("glm-5.3");
    const joined = buildIncrementalPrompt(
      keeping.renderer,
      keeping.certificate,
      request(keeping.renderer, "Long</think>It is", over),
    );
    expect(joined).toMatchObject({ kind: "user_turn_after_length" });
  });

  it.each<[string, Partial<IncrementalRequest>, string]>([
    ["a malformed turn", { malformed: true }, "turn_malformed"],
    ["an empty suffix", { suffix: [] }, "suffix_empty"],
    ["a suffix with another role", { suffix: [RESULT, { role: "system", content: "x" }] }, "suffix_role"],
    ["a result that answers another call", { suffix: [{ ...RESULT, tool_call_id: "c9" }] }, "results_do_not_answer"],
    ["a call cut by length", { end: "length" }, "turn_cut_inside_block"],
    ["a shape that is not certified", { suffix: [RESULT, USER] }, "not_certified"],
  ])("falls back for %s", async (_name, over, reason) => {
    const { renderer, certificate } = await prepare();
    expect(buildIncrementalPrompt(renderer, certificate, request(renderer, SAMPLED, over))).toMatchObject({
      fallback: reason,
    });
  });

  it("falls back when the template ends the turn otherwise than it was certified", async () => {
    const { renderer, certificate } = await prepare();
    const other: Certificate = {
      ...certificate,
      shapes: { tool_result: { conversations: 1, stop_id: 0, seam_ids: [] } },
    };
    expect(buildIncrementalPrompt(renderer, other, request(renderer, SAMPLED))).toMatchObject({
      fallback: "junction_differs",
    });
  });
});

describe.skipIf(vocabularyMissing("qwen3.5"))("Qwen 3.5's own vocabulary, where two line breaks are one token", () => {
  it("certifies the tool loop: turns behind an open reasoning block hold reasoning", async () => {
    const directory = await mkdtemp(join(tmpdir(), "tito-bundle-"));
    try {
      const out = join(directory, "bundle");
      const from = VOCABULARIES["qwen3.5"]!;
      await makeBundle({ from, template: templatePath("qwen3.5"), family: "qwen3.5", out, date: "2026-11-30" });
      const { shapes } = certify(await PromptRenderer.open(await loadBundle(out)), { conversations: 6 });
      expect(Object.keys(shapes)).toEqual(["tool_result", "parallel_results"]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
