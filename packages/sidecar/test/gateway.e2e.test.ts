import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { readTrajectory } from "@tito/format";
import { describe, expect, it } from "vitest";
import { trajectoryKey } from "../src/gate/gate.js";
import { SEALED_IDS_FILE } from "../src/trajectory/sealed-ids.js";
import {
  engineLog,
  postChat,
  scriptedEngine,
  serverBefore,
  startTestSidecar,
  temporaryDir,
  turnsOf,
  user,
} from "./harness.js";

const RULES = [{ match: { contains: "say" }, reply: { content: "As you say." } }];
const ADMIN = "admin-key-of-the-gateway";

async function startGateway() {
  const engine = await scriptedEngine(RULES);
  const started = await startTestSidecar(engine, { gateway: true, trajectoryId: null, secrets: { apiKey: ADMIN } });
  const of = (id: string, key = trajectoryKey(ADMIN, id)) => ({ url: `${started.sidecar.origin}/t/${id}/v1`, key });
  return { engine, of, ...started };
}

describe("a central gateway", () => {
  it("creates trajectories by the admin key or by the first request, and keeps them apart", async () => {
    const { of, out, sidecar, engine } = await startGateway();
    const created = await fetch(`${sidecar.origin}/t/made`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN}` },
    });
    expect(created.status).toBe(201);
    expect(await created.json()).toMatchObject({ trajectory_id: "made", api_key: trajectoryKey(ADMIN, "made") });
    const ids = Array.from({ length: 24 }, (_, index) => `g${index}`);
    await Promise.all(
      ids.map(async (id) => {
        for (let turn = 0; turn < 3; turn++) {
          const response = await postChat(of(id), { messages: [user(`say ${id} ${turn}`)] });
          expect(response.status).toBe(200);
          await response.text();
        }
      }),
    );
    const reports = await sidecar.close("test");
    expect(reports.map((report) => report.trajectory_id).sort()).toEqual([...ids, "made"].sort());
    for (const id of ids) {
      const turns = turnsOf(readTrajectory(join(out, id), { mode: "strict" }));
      const asked = turns.flatMap((turn) => turn.record.messages_new.map((message) => message.content));
      expect(asked).toEqual([0, 1, 2].map((turn) => `say ${id} ${turn}`));
    }
    expect(await engineLog(engine)).toHaveLength(ids.length * 3);
  });

  it("gives no trajectory to the key of another one, nor to a wrong one", async () => {
    const { of, engine } = await startGateway();
    await (await postChat(of("a"), { messages: [user("say a")] })).text();
    const before = (await engineLog(engine)).length;
    for (const key of [trajectoryKey(ADMIN, "b"), "", "wrong", ADMIN.slice(0, -1), `${ADMIN}x`]) {
      const response = await postChat(of("a", key), { messages: [user("say b")] });
      expect(response.status).toBe(401);
      const { error } = (await response.json()) as { error: { message: string; code: string } };
      expect(error.code).toBe("invalid_api_key");
      expect((await postChat(of("unknown", key), { messages: [user("say b")] })).status).toBe(401);
    }
    expect(await engineLog(engine)).toHaveLength(before);
  });

  it("seals trajectories one by one; a sealed one stays sealed", async () => {
    const { of, out, sidecar } = await startGateway();
    for (const id of ["a", "b"]) await (await postChat(of(id), { messages: [user("say")] })).text();
    const seal = (id: string) =>
      fetch(`${sidecar.origin}/t/${id}/seal`, { method: "POST", headers: { authorization: `Bearer ${ADMIN}` } });
    expect(await (await seal("a")).json()).toMatchObject({ trajectory_id: "a", turns: 1, status: "complete" });
    const refused = await postChat(of("a"), { messages: [user("say")] });
    expect(refused.status).toBe(410);
    expect(await refused.text()).not.toContain(out);
    // A seal whose answer was lost is asked for again.
    expect((await seal("a")).status).toBe(410);
    expect((await seal("never")).status).toBe(404);
    expect((await postChat(of("b"), { messages: [user("say")] })).status).toBe(200);
  });
});

it("a trajectory whose id is like the file of sealed ids takes no place that the file needs (O.184)", async () => {
  const { sidecar, out } = await startGateway();
  const post = (path: string) =>
    fetch(`${sidecar.origin}/t/${path}`, { method: "POST", headers: { authorization: `Bearer ${ADMIN}` } });
  expect((await post(SEALED_IDS_FILE)).status).toBe(404);
  for (const id of [SEALED_IDS_FILE.split(".")[0]!, "other"]) {
    expect((await post(id)).status).toBe(201);
    expect((await post(`${id}/seal`)).status).toBe(200);
  }
  expect(readFileSync(join(out, SEALED_IDS_FILE), "utf8").trimEnd().split("\n")).toHaveLength(2);
});

describe("a sealed id of a gateway (O.116)", () => {
  const admin = { method: "POST", headers: { authorization: `Bearer ${ADMIN}` } };
  /** What every way to a trajectory says of an id. */
  async function statusesOf(
    origin: string,
    of: (id: string, key?: string) => { url: string; key: string },
    id: string,
  ) {
    const answers = [
      await postChat(of(id), { messages: [user("say")] }),
      await postChat(of(id, ADMIN), { messages: [user("say")] }),
      await fetch(`${of(id).url}/models`, { headers: { authorization: `Bearer ${of(id).key}` } }),
      await fetch(`${of(id).url}/messages`, {
        method: "POST",
        headers: { "x-api-key": of(id).key, "content-type": "application/json", "anthropic-version": "2023-06-01" },
        body: JSON.stringify({ max_tokens: 9, messages: [user("say")] }),
      }),
      await fetch(`${origin}/t/${id}`, admin),
      await fetch(`${origin}/t/${id}/seal`, admin),
    ];
    for (const answer of answers) {
      expect(await answer.text()).toContain("is sealed");
      expect(answer.headers.get("x-should-retry")).toBe("false");
    }
    return answers.map((answer) => answer.status);
  }

  it("stays closed when its directory was collected, for the gateway's life and after a restart", async () => {
    const { of, out, sidecar, engine } = await startGateway();
    const store = temporaryDir();
    for (const id of ["a", "b"]) await (await postChat(of(id), { messages: [user("say")] })).text();
    expect((await fetch(`${sidecar.origin}/t/a/seal`, admin)).status).toBe(200);
    renameSync(join(out, "a"), join(store, "a"));
    expect(await statusesOf(sidecar.origin, of, "a")).toEqual(Array(6).fill(410));
    expect((await postChat(of("a", "wrong"), { messages: [user("say")] })).status).toBe(401);
    expect((await postChat(of("b"), { messages: [user("say")] })).status).toBe(200);
    await sidecar.close("test");
    renameSync(join(out, "b"), join(store, "b"));

    const options = { gateway: true, trajectoryId: null, secrets: { apiKey: ADMIN }, out };
    const again = await startTestSidecar(engine, options);
    const ofAgain = (id: string, key = trajectoryKey(ADMIN, id)) => ({
      url: `${again.sidecar.origin}/t/${id}/v1`,
      key,
    });
    for (const id of ["a", "b"])
      expect(await statusesOf(again.sidecar.origin, ofAgain, id)).toEqual(Array(6).fill(410));
    expect((await postChat(ofAgain("c"), { messages: [user("say")] })).status).toBe(200);
    await again.sidecar.close("test");
    expect(readdirSync(out).sort()).toEqual(["c", SEALED_IDS_FILE]);

    writeFileSync(join(out, SEALED_IDS_FILE), "a 00000000\n");
    await expect(startTestSidecar(engine, options)).rejects.toMatchObject({ code: "damaged" });
  });

  it("whose seal was begun by a process that died takes no call, and is still sealed by its owner", async () => {
    const { of, out, sidecar, engine } = await startGateway();
    await (await postChat(of("a"), { messages: [user("say")] })).text();
    await sidecar.close("test");
    rmSync(join(out, "a", "COMPLETE"));
    const again = await startTestSidecar(engine, {
      gateway: true,
      trajectoryId: null,
      secrets: { apiKey: ADMIN },
      out,
    });
    const origin = again.sidecar.origin;
    const refused = await postChat(
      { url: `${origin}/t/a/v1`, key: trajectoryKey(ADMIN, "a") },
      { messages: [user("say")] },
    );
    expect(refused.status).toBe(410);
    expect(await (await fetch(`${origin}/t/a/seal`, admin)).json()).toMatchObject({ trajectory_id: "a" });
    expect((await fetch(`${origin}/t/a/seal`, admin)).status).toBe(410);
  });
});

describe("an Idempotency-Key (O.117)", () => {
  it("with another body is another call, in every dialect; with the same body the same one", async () => {
    const engine = await scriptedEngine(RULES);
    const hold = await startTestSidecar(engine);
    const headers = { "idempotency-key": "once" };
    const bodies = {
      "chat/completions": (text: string) => ({ messages: [user(text)] }),
      responses: (text: string) => ({ input: text }),
      messages: (text: string) => ({ max_tokens: 9, messages: [user(text)] }),
    };
    let asked = 0;
    for (const [path, body] of Object.entries(bodies)) {
      const post = (text: string) =>
        fetch(`${hold.url}/${path}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${hold.key}`, ...headers },
          body: JSON.stringify({ model: "policy", ...body(text) }),
        });
      for (const text of ["say one", "say two"]) {
        const response = await post(text);
        expect(response.status).toBe(200);
        await response.text();
        asked += 1;
      }
    }
    expect(turnsOf(await hold.sealed())).toHaveLength(asked);
  });
});

describe("calls of one trajectory", () => {
  it("run side by side: the engine sees them at once, each answer is recorded once, commit numbers are in order", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        postChat(started, { messages: [user(`say ${index}`)], stream: index % 2 === 0 }).then((response) =>
          response.text(),
        ),
      ),
    );
    expect(replies).toHaveLength(12);
    const log = await started.sealed();
    expect(turnsOf(log)).toHaveLength(12);
    expect(log.commits.map((commit) => commit.commit)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
  });
});

describe("the gate on the wire", () => {
  const raw = async (origin: string, request: string): Promise<string> => {
    const { hostname, port } = new URL(origin);
    const socket = connect(Number(port), hostname);
    socket.write(request);
    let text = "";
    for await (const bytes of socket) {
      text += String(bytes);
      if (text.includes("\r\n\r\n")) break;
    }
    socket.destroy();
    return text.split("\r\n")[0]!;
  };

  it("never reaches another destination (anchors B5.17), and refuses what is no call (B5.18)", async () => {
    const canary = await serverBefore({ url: "" }, (_request, response) => {
      response.end();
      return true;
    });
    const engine = await scriptedEngine(RULES);
    const { sidecar, key } = await startTestSidecar(engine);
    const { host } = new URL(sidecar.origin);
    const evil = new URL(canary.url).host;
    const body = '{"messages":[{"role":"user","content":"say"}]}';
    const post = (target: string, hostHeader = `host: ${host}`) =>
      raw(
        sidecar.origin,
        `POST ${target} HTTP/1.1\r\n${hostHeader}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
    const call = "/t/t1/v1/chat/completions";
    expect(await post(call)).toContain(" 200 ");
    for (const target of [
      `//${evil}${call}`,
      `http://${evil}${call}`,
      `http://${host}${call}`,
      `/t/t1/../t1/v1/chat/completions`,
      `/t/%2e%2e/v1/chat/completions`,
      `@${evil}/`,
    ]) {
      expect(await post(target), target).toMatch(/ 40[0-9] /);
    }
    for (const header of [
      "host: evil.example",
      `host: ${host}\r\nhost: evil.example`,
      `host: ${host}\r\norigin: http://evil.example`,
      "x: y",
    ]) {
      expect(await post(call, header), header).toMatch(/ 40[0-9] /);
    }
    expect(
      await raw(sidecar.origin, `CONNECT ${evil} HTTP/1.1\r\nhost: ${host}\r\n\r\n`).catch(() => "closed"),
    ).not.toContain(" 200 ");
    expect(await post(call, `host: ${host}\r\ntransfer-encoding: chunked`)).toContain(" 400 ");
    expect(canary.requests).toHaveLength(0);
  });

  it("refuses a body that is too large by its promise, and headers that are", async () => {
    const engine = await scriptedEngine(RULES);
    const { sidecar, key } = await startTestSidecar(engine);
    const { host } = new URL(sidecar.origin);
    const head = `POST /t/t1/v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n`;
    expect(await raw(sidecar.origin, `${head}content-length: 100000000\r\n\r\n`)).toContain(" 413 ");
    expect(await raw(sidecar.origin, `${head}x: ${"y".repeat(40_000)}\r\n\r\n`)).toContain(" 431 ");
    expect(await raw(sidecar.origin, `${head}content-encoding: rot13\r\ncontent-length: 2\r\n\r\n{}`)).toContain(
      " 415 ",
    );
  });

  it("answers in the envelope of the dialect that a path belongs to", async () => {
    const engine = await scriptedEngine(RULES);
    const { sidecar } = await startTestSidecar(engine);
    const post = (path: string) =>
      fetch(`${sidecar.origin}/t/t1${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer no" },
        body: "{}",
      });
    expect(await (await post("/v1/messages")).json()).toMatchObject({
      type: "error",
      error: { type: "authentication_error" },
    });
    expect(await (await post("/v1/chat/completions")).json()).toMatchObject({ error: { code: "invalid_api_key" } });
  });

  it("listens on loopback only", async () => {
    const engine = await scriptedEngine(RULES);
    const { sidecar } = await startTestSidecar(engine);
    expect(new URL(sidecar.origin).hostname).toBe("127.0.0.1");
  });
});

describe("requests that can not be captured faithfully", () => {
  it.each([
    [{ n: 2 }, "n:"],
    [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:" } }] }] }, "image_url"],
    [{ truncate_prompt_tokens: 5 }, "truncate_prompt_tokens"],
    [{ include_reasoning: false }, "include_reasoning"],
    [{ messages: [] }, "messages"],
    [{ messages: "x" }, "messages"],
  ])("are refused before a token is spent: %j", async (fields, words) => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const response = await postChat(started, { messages: [user("say")], ...fields });
    expect(response.status).toBe(400);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(words);
    expect(await engineLog(engine)).toHaveLength(0);
  });

  it("harmless fields are accepted", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine);
    const response = await postChat(started, {
      messages: [user("say")],
      n: 1,
      user: "me",
      store: false,
      temperature: null,
      stop: null,
      prompt_cache_key: "k",
      metadata: { a: "b" },
      parallel_tool_calls: true,
    });
    expect(response.status).toBe(200);
    await response.text();
  });

  it("a prompt beyond --max-context-tokens is the dialect's overflow", async () => {
    const engine = await scriptedEngine(RULES);
    const started = await startTestSidecar(engine, { maxContextTokens: 40 });
    const response = await postChat(started, { messages: [user("say ".repeat(40))] });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "context_length_exceeded" } });
    const short = await postChat(started, { messages: [user("say")] });
    expect(short.status).toBe(200);
    const { usage } = (await short.json()) as { usage: { total_tokens: number } };
    expect(usage.total_tokens).toBeLessThanOrEqual(40);
  });
});
