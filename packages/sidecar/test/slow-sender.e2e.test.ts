import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { describe, expect, it, onTestFinished } from "vitest";
import { SERVER_LIMITS } from "../src/server.js";
import { postChat, type Started, scriptedEngine, startTestSidecar, turnsOf, user } from "./harness.js";

const RULES = [{ match: { lastContains: "hello" }, reply: { content: "Good day." } }];
const HELLO = { messages: [user("hello")] };
const LIMITS = { headersTimeoutMs: 1_000, requestTimeoutMs: 1_500, checkIntervalMs: 100 };
const TRICKLE_MS = 200;

async function start() {
  const engine = await scriptedEngine(RULES);
  return startTestSidecar(engine, {}, { limits: LIMITS });
}

interface Sender {
  socket: Socket;
  /** Everything that came back when the sidecar had ended its side. */
  answer: Promise<string>;
  /** The connection is gone, although this side never ended its own. */
  closed: Promise<unknown>;
}

/** A client that never closes its own side: only the sidecar can end this. */
function sender(started: Started, head: string): Sender {
  const { hostname, port } = new URL(started.url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let text = "";
  socket.on("data", (bytes) => {
    text += String(bytes);
  });
  socket.on("error", () => undefined);
  socket.write(head);
  onTestFinished(() => void socket.destroy());
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const ended = new Promise((resolve) => socket.once("end", resolve));
  return { socket, closed, answer: Promise.race([ended, closed]).then(() => text) };
}

/** One byte now and then, for as long as the connection takes it. */
function trickle({ socket }: Sender, byte: string): void {
  const timer = setInterval(() => socket.write(byte), TRICKLE_MS);
  socket.once("close", () => clearInterval(timer));
}

const drained = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.once("drain", resolve);
  });

const headOf = (started: Started, more: string): string => {
  const { host, pathname } = new URL(started.url);
  return `POST ${pathname}/chat/completions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${started.key}\r\ncontent-type: application/json\r\n${more}`;
};

const statusOf = (answer: string): string => answer.split("\r\n")[0]!.split(" ")[1] ?? "closed";

/** Median duration of calls that all have to succeed. */
async function served(started: Started, calls: number): Promise<number> {
  const durations: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const before = performance.now();
    const response = await postChat(started, HELLO);
    expect(response.status).toBe(200);
    await response.text();
    durations.push(performance.now() - before);
  }
  return durations.sort((a, b) => a - b)[calls >> 1]!;
}

describe("senders that are slow or hostile", () => {
  it("400 sockets with a header byte now and then are shed with 408, and others are served meanwhile (B5.16)", async () => {
    const started = await start();
    await served(started, 10);
    const alone = await served(started, 40);
    const senders = Array.from({ length: 400 }, () => sender(started, headOf(started, "x-slow: ")));
    await Promise.all(senders.map(({ socket }) => once(socket, "connect")));
    for (const one of senders) trickle(one, "a");
    const beside = await served(started, 40);
    expect(beside).toBeLessThan(alone * 5);
    const statuses = await Promise.all(senders.map(({ answer }) => answer.then(statusOf)));
    await Promise.all(senders.map(({ closed }) => closed));
    // A reset may overtake the answer; then the connection is just closed.
    expect(new Set(statuses).has("408")).toBe(true);
    expect(statuses.every((status) => status === "408" || status === "closed")).toBe(true);
    await served(started, 1);
    expect(turnsOf(await started.sealed())).toHaveLength(91);
  });

  it("a body of a byte now and then is shed with 408, and nothing of it is recorded (B5.16)", async () => {
    const started = await start();
    const senders = Array.from({ length: 50 }, () => sender(started, headOf(started, "content-length: 5000\r\n\r\n{")));
    for (const one of senders) trickle(one, " ");
    const statuses = await Promise.all(senders.map(({ answer }) => answer.then(statusOf)));
    await Promise.all(senders.map(({ closed }) => closed));
    expect(new Set(statuses).has("408")).toBe(true);
    expect(statuses.every((status) => status === "408" || status === "closed")).toBe(true);
    await served(started, 1);
    const log = await started.sealed();
    expect(log.intents.size).toBe(1);
  });

  it.each([
    ["that says so", "content-length: 100000000\r\n\r\n", (chunk: string) => chunk],
    [
      "that does not say so",
      "transfer-encoding: chunked\r\n\r\n",
      (chunk: string) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`,
    ],
  ])("a body of 100 MB %s is refused with 413 before it is whole (B5.16)", async (_words, more, frame) => {
    const started = await start();
    const one = sender(started, headOf(started, more));
    const chunk = frame(" ".repeat(1_000_000));
    let answered = false;
    void one.answer.then(() => {
      answered = true;
    });
    let sent = 0;
    while (sent < 100 && !answered) {
      sent += 1;
      if (!one.socket.write(chunk)) await Promise.race([drained(one.socket), one.answer]);
    }
    expect(["413", "closed"]).toContain(statusOf(await one.answer));
    expect(sent).toBeLessThan(100);
    await served(started, 1);
  });

  it.each([
    ["20,000 headers", Array.from({ length: 20_000 }, (_, index) => `x-${index}: y`).join("\r\n")],
    [
      "one more header than are allowed",
      Array.from({ length: SERVER_LIMITS.headers - 3 }, (_, index) => `x-${index}: y`).join("\r\n"),
    ],
    ["one header of 40 kB", `x: ${"y".repeat(40_000)}`],
  ])("%s are refused with 431, none is dropped silently (B5.16)", async (_words, headers) => {
    const started = await start();
    const one = sender(started, headOf(started, `connection: close\r\n${headers}\r\ncontent-length: 2\r\n\r\n{}`));
    expect(statusOf(await one.answer)).toBe("431");
    await served(started, 1);
  });

  it("as many headers as are allowed are no reason to refuse", async () => {
    const started = await start();
    const headers = Array.from({ length: SERVER_LIMITS.headers - 5 }, (_, index) => `x-${index}: y`).join("\r\n");
    const one = sender(started, headOf(started, `connection: close\r\n${headers}\r\ncontent-length: 2\r\n\r\n{}`));
    // The body is no request of the dialect; the headers were not in the way.
    expect(statusOf(await one.answer)).toBe("400");
  });
});
