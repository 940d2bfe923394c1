import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type NamedTensor, readSafetensors, writeSafetensors } from "../src/lm/safetensors.js";
import { makeModelDirectory } from "./support/model-directory.js";
import { engines, get, post } from "./support/running.js";

const { dir, start, script } = engines();
const other = makeModelDirectory("other weights");
const made: string[] = [];
afterAll(() => {
  other.remove();
  for (const path of made) rmSync(path, { recursive: true, force: true });
});

const PROMPT = { model: "policy", prompt: "the answer is", max_tokens: 12, ignore_eos: true, return_token_ids: true };
const seeded = { ...PROMPT, seed: 7, logprobs: 0 };

interface Choice {
  token_ids: number[];
  finish_reason: string;
  weight_versions?: { version: string; start: number; end: number }[];
}

async function complete(url: string, body: object = seeded): Promise<Choice> {
  const { status, body: reply } = await post(`${url}/v1/completions`, body);
  expect(status, JSON.stringify(reply)).toBe(200);
  return reply.choices[0];
}

/** A copy of the other weights that was changed by `edit`. */
function broken(edit: (copy: string) => void): string {
  const copy = mkdtempSync(join(tmpdir(), "tito-weights-"));
  made.push(copy);
  cpSync(other.dir, copy, { recursive: true });
  edit(copy);
  return copy;
}

function editConfig(copy: string, changes: object): void {
  const file = join(copy, "config.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...changes }));
}

function editTensors(copy: string, edit: (tensors: Map<string, NamedTensor>) => void): void {
  const file = join(copy, "model.safetensors");
  const tensors = readSafetensors(readFileSync(file), file);
  edit(tensors);
  writeFileSync(file, writeSafetensors(tensors));
}

async function bothSides() {
  const before = await start();
  const after = await start({ weights: other.dir });
  const [old, fresh] = [await complete(before.url), await complete(after.url)];
  expect(old.token_ids).not.toEqual(fresh.token_ids);
  return { url: before.url, old: old.token_ids, fresh: fresh.token_ids };
}

const update = (url: string, body: object) => post(`${url}/update_weights_from_disk`, body);
const versionOf = async (url: string) => (await get(`${url}/weight_info`)).body.weight_version;

describe("new weights from disk", () => {
  it("answer from the next request on, under their label; the next update without a label gets one of its own (O.140)", async () => {
    const { url, old, fresh } = await bothSides();
    const first = await update(url, { model_path: other.dir, weight_version: "step-1" });
    expect(first).toMatchObject({ status: 200, body: { success: true, weight_version: "step-1" } });
    const answer = await complete(url);
    expect(answer.token_ids).toEqual(fresh);
    expect(answer.weight_versions).toEqual([{ version: "step-1", start: 0, end: fresh.length }]);
    const second = await update(url, { model_path: dir });
    expect(second.body.weight_version).toBe("update-2");
    expect(await versionOf(url)).toBe("update-2");
    expect((await complete(url)).token_ids).toEqual(old);
  });

  it("leave an answer under way what it began with: its weights and its label", async () => {
    const { url, old, fresh } = await bothSides();
    await update(url, { model_path: dir, weight_version: "step-0" });
    await post(`${url}/test/faults`, { fault: { kind: "hang_after", tokens: 3 } });
    const underWay = complete(url);
    await post(`${url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    expect((await update(url, { model_path: other.dir, weight_version: "step-1" })).status).toBe(200);
    const later = await complete(url);
    await post(`${url}/test/release`, {});
    expect(await underWay).toMatchObject({
      token_ids: old,
      finish_reason: "length",
      weight_versions: [{ version: "step-0", start: 0, end: old.length }],
    });
    expect(later).toMatchObject({ token_ids: fresh, weight_versions: [{ version: "step-1", start: 0, end: 12 }] });
  });

  it("abort the answers under way when the request says so; what they had keeps its label", async () => {
    const { url, old } = await bothSides();
    await update(url, { model_path: dir, weight_version: "step-0" });
    await post(`${url}/test/faults`, { fault: { kind: "hang_after", tokens: 3 } });
    const underWay = complete(url);
    await post(`${url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    await update(url, { model_path: other.dir, weight_version: "step-1", abort_all_requests: true });
    expect(await underWay).toMatchObject({
      token_ids: old.slice(0, 3),
      finish_reason: "abort",
      weight_versions: [{ version: "step-0", start: 0, end: 3 }],
    });
  });

  it("keep their label from the test route too: it takes none of other weights, and none that it gave away (O.107)", async () => {
    const { url } = await bothSides();
    const label = (version: string) => post(`${url}/test/weight_version`, { version });
    expect((await update(url, { model_path: other.dir, weight_version: "step-1" })).status).toBe(200);
    expect((await label("default")).status).toBe(400);
    expect(await versionOf(url)).toBe("step-1");
    expect((await label("step-1b")).body).toEqual({ weight_version: "step-1b" });
    expect((await update(url, { model_path: dir, weight_version: "step-1b" })).status).toBe(400);
    expect((await update(url, { model_path: dir, weight_version: "step-2" })).status).toBe(200);
    for (const owned of ["step-1", "step-1b"]) expect((await label(owned)).status).toBe(400);
    expect(await versionOf(url)).toBe("step-2");
    expect((await label("default")).status).toBe(200);
  });

  it("empty the prefix cache: keys of other weights are not reused (O.142)", async () => {
    const { url } = await start({ promptTokensDetails: true });
    const cached = async () =>
      (await post(`${url}/v1/completions`, seeded)).body.usage.prompt_tokens_details.cached_tokens;
    expect([await cached(), (await cached()) > 0]).toEqual([0, true]);
    await update(url, { model_path: other.dir, weight_version: "step-1" });
    expect([await cached(), (await cached()) > 0]).toEqual([0, true]);
  });

  it("may come without a tokenizer, and with the head that repeats the embedding, as trainers save them", async () => {
    const { url, fresh } = await bothSides();
    const saved = broken((copy) => {
      rmSync(join(copy, "tokenizer.json"));
      editTensors(copy, (tensors) => tensors.set("lm_head.weight", tensors.get("model.embed_tokens.weight")!));
    });
    expect((await update(url, { model_path: saved, weight_version: "step-1" })).body.success).toBe(true);
    expect((await complete(url)).token_ids).toEqual(fresh);
  });

  const REFUSED: [string, (copy: string) => void, RegExp][] = [
    ["another width", (copy) => editConfig(copy, { hidden_size: 32, head_dim: 16 }), /hidden_size is 32, .* has 64/],
    ["another vocabulary size", (copy) => editConfig(copy, { vocab_size: 300 }), /vocab_size is 300, .* has 296/],
    ["another RoPE base", (copy) => editConfig(copy, { rope_theta: 10_000 }), /rope_theta is 10000, .* has 500/],
    ["another kind of RoPE", (copy) => editConfig(copy, { rope_scaling: { rope_type: "yarn" } }), /rope_scaling/],
    [
      "the same number of other tokens",
      (copy) => {
        const file = join(copy, "tokenizer.json");
        const tokenizer = JSON.parse(readFileSync(file, "utf8"));
        for (const token of tokenizer.added_tokens) if (token.content === "<think>") token.content = "<thunk>";
        tokenizer.model.vocab = Object.fromEntries(
          Object.entries(tokenizer.model.vocab).map(([text, id]) => [text === "<think>" ? "<thunk>" : text, id]),
        );
        writeFileSync(file, JSON.stringify(tokenizer));
      },
      /token \d+ is "<thunk>", the running model has "<think>"/,
    ],
    ["a tensor that is missing", (copy) => editTensors(copy, (all) => all.delete("model.norm.weight")), /model\.norm/],
    [
      "a tensor of another shape",
      (copy) =>
        editTensors(copy, (all) => all.set("model.norm.weight", { shape: [32], data: new Float32Array(32).fill(1) })),
      /model\.norm\.weight has shape 32, not 64/,
    ],
    [
      "a tensor of another model",
      (copy) => editTensors(copy, (all) => all.set("model.layers.1.norm", { shape: [64], data: new Float32Array(64) })),
      /model\.layers\.1\.norm is not part/,
    ],
    [
      "a value that is no number",
      (copy) => editTensors(copy, (all) => all.get("model.norm.weight")!.data.fill(Number.NaN, 3, 4)),
      /model\.norm\.weight holds a value/,
    ],
    ["half a file", (copy) => truncateSync(join(copy, "model.safetensors"), 5000), /model\.safetensors/],
    ["no weights at all", (copy) => rmSync(join(copy, "model.safetensors")), /model\.safetensors/],
  ];

  it.each(REFUSED)("with %s are refused by name, and the old ones stay", async (_, edit, named) => {
    const { url, old } = await bothSides();
    await update(url, { model_path: dir, weight_version: "step-0" });
    const refused = await update(url, { model_path: broken(edit), weight_version: "step-1", abort_all_requests: true });
    expect(refused).toMatchObject({ status: 400, body: { success: false } });
    expect(refused.body.message).toMatch(named);
    expect(await complete(url)).toMatchObject({ token_ids: old, weight_versions: [{ version: "step-0" }] });
  });

  it("under a label that other weights have are refused; the same weights may come again (O.141)", async () => {
    const { url } = await start();
    expect((await update(url, { model_path: other.dir, weight_version: "default" })).body.message).toMatch(/default/);
    await update(url, { model_path: other.dir, weight_version: "step-1" });
    expect((await update(url, { model_path: other.dir, weight_version: "step-1" })).body.success).toBe(true);
    const rename = (label: string) => post(`${url}/update_weight_version`, { new_version: label });
    expect((await rename("default")).status).toBe(400);
    expect((await rename("final")).body).toMatchObject({ success: true, new_version: "final" });
    expect((await update(url, { model_path: dir, weight_version: "final" })).status).toBe(400);
    expect(await versionOf(url)).toBe("final");
  });

  it("mean nothing to a script", async () => {
    const { url } = await start({ policy: script({ rules: [], unmatched: { content: "no" } }) });
    expect((await update(url, { model_path: other.dir })).body.message).toMatch(/script has no weights/);
  });
});

describe("vLLM's calls", () => {
  const bring = async (url: string, label: string) => {
    await post(`${url}/start_weight_update`, {});
    await post(`${url}/update_weights`, { update_info: { model_path: other.dir } });
    return post(`${url}/finish_weight_update`, { weight_version: label });
  };

  it("bring weights into use when they are finished, and not before", async () => {
    const { url, old, fresh } = await bothSides();
    expect((await post(`${url}/update_weights`, { update_info: { model_path: other.dir } })).status).toBe(400);
    await post(`${url}/start_weight_update`, {});
    expect((await post(`${url}/finish_weight_update`, {})).status).toBe(400);
    expect((await post(`${url}/update_weights`, { update_info: { model_path: other.dir } })).status).toBe(200);
    expect([(await complete(url)).token_ids, await versionOf(url)]).toEqual([old, "default"]);
    expect((await post(`${url}/finish_weight_update`, { weight_version: "step-1" })).status).toBe(200);
    expect([(await complete(url)).token_ids, await versionOf(url)]).toEqual([fresh, "step-1"]);
  });

  it("hold new requests while paused; they begin with what is in use when the engine resumes", async () => {
    const { url, fresh } = await bothSides();
    await post(`${url}/pause`, {});
    expect((await get(`${url}/is_paused`)).body).toEqual({ is_paused: true });
    const waiting = complete(url);
    await post(`${url}/test/wait`, { gauge: "running", atLeast: 1 });
    expect((await bring(url, "step-1")).status).toBe(200);
    await post(`${url}/resume`, {});
    expect(await waiting).toMatchObject({ token_ids: fresh, weight_versions: [{ version: "step-1" }] });
    expect((await get(`${url}/is_paused`)).body).toEqual({ is_paused: false });
  });

  it.each(["abort", "wait", "keep"])("pause with mode %s ends, awaits or freezes an answer under way", async (mode) => {
    const { url, old } = await bothSides();
    await post(`${url}/test/faults`, { fault: { kind: "hang_after", tokens: 3 } });
    const underWay = complete(url);
    await post(`${url}/test/wait`, { gauge: "hanging", atLeast: 1 });
    const paused = post(`${url}/pause?mode=${mode}`, {});
    if (mode === "keep") await paused;
    await post(`${url}/test/release`, {});
    if (mode !== "keep") {
      const [answer] = await Promise.all([underWay, paused]);
      expect(answer).toMatchObject(
        mode === "abort"
          ? { finish_reason: "abort", token_ids: old.slice(0, 3) }
          : { finish_reason: "length", token_ids: old },
      );
      return;
    }
    await bring(url, "step-1");
    expect((await get(`${url}/test/state`)).body.running).toBe(1);
    await post(`${url}/resume`, {});
    expect((await underWay).token_ids).toEqual(old);
  });

  it("refuse a mode that is none", async () => {
    const { url } = await start();
    expect((await post(`${url}/pause?mode=later`, {})).body.error.message).toMatch(/abort, wait, keep/);
  });
});

describe("a model directory that transformers 5 saved", () => {
  const ropeIn5 = (copy: string, parameters: object | null) => {
    const file = join(copy, "config.json");
    const { rope_theta: _, ...config } = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify(parameters === null ? config : { ...config, rope_parameters: parameters }));
  };

  it("has its RoPE base in rope_parameters", async () => {
    const saved = broken((copy) => ropeIn5(copy, { rope_theta: 500, rope_type: "default" }));
    const [own, again] = [await start({ weights: other.dir }), await start({ weights: saved })];
    expect((await complete(again.url)).token_ids).toEqual((await complete(own.url)).token_ids);
  });

  it.each([
    [{ rope_theta: 500, rope_type: "linear", factor: 2 }, /rope_type/],
    [null, /rope_parameters\.rope_theta/],
  ])("with RoPE %j is refused", async (parameters, named) => {
    await expect(start({ weights: broken((copy) => ropeIn5(copy, parameters)) })).rejects.toThrow(named);
  });

  it("with two different bases is refused", async () => {
    const saved = broken((copy) => editConfig(copy, { rope_parameters: { rope_theta: 10_000 } }));
    await expect(start({ weights: saved })).rejects.toThrow(/rope_theta is 500, but/);
  });
});
