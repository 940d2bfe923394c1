// An engine that replays: `node mock-engine.mjs FILE`. FILE holds {replies: {key: {body, chunks}}, streamsIds, chunkMs}; a request names its reply by the
// last [bench:KEY] in it. Answers cost it one write, or one for each chunk where chunkMs says how far apart they are. The first line on standard output is its URL.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const { replies, streamsIds, chunkMs } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const known = new Map(
  Object.entries(replies).map(([key, { body, chunks }]) => [
    key,
    {
      body: Buffer.from(body),
      chunks,
      stream: Buffer.from(`${chunks.map((chunk) => `data: ${chunk}\n\n`).join("")}data: [DONE]\n\n`),
    },
  ]),
);
const START = "[bench:";
/** Digits that a chunk carries in place of the moment at which it is sent, in nanoseconds of the machine's monotonic clock. */
const MOMENT = "000000000000000000";

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => answer(request, response, Buffer.concat(parts)));
});

function answer(request, response, body) {
  if (request.url === "/v1/models")
    return send(response, '{"object":"list","data":[{"id":"policy","object":"model","owned_by":"vllm"}]}');
  if (request.url === "/version") return send(response, '{"version":"replay"}');
  if (request.method !== "POST") return response.writeHead(404).end();
  const at = body.lastIndexOf(START);
  const key = at < 0 ? "probe" : body.toString("latin1", at + START.length, body.indexOf("]", at));
  const reply = known.get(key);
  if (!body.includes('"stream":true')) return send(response, reply.body);
  if (!streamsIds) return send(response, '{"error":{"message":"no streams"}}', 400);
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (chunkMs === 0 || key === "probe") return response.end(reply.stream);
  sendSlowly(response, reply.chunks, 0);
}

function sendSlowly(response, chunks, index) {
  if (index === chunks.length) return response.end("data: [DONE]\n\n");
  const moment = process.hrtime.bigint().toString().padStart(MOMENT.length, "0");
  response.write(`data: ${chunks[index].replace(MOMENT, moment)}\n\n`);
  setTimeout(sendSlowly, chunkMs, response, chunks, index + 1);
}

function send(response, body, status = 200) {
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
