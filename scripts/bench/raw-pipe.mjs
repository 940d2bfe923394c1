// The least that a hop costs in Node: `node raw-pipe.mjs URL` passes requests and answers on, byte by byte, unread. Without a URL it answers by itself.
import { Agent, createServer, request as forward } from "node:http";

const target = process.argv[2];
const agent = new Agent({ keepAlive: true });
const server = createServer((request, response) => {
  if (target === undefined) return response.end();
  const { method, url, headers } = request;
  const onward = forward(`${target}${url}`, { method, headers, agent }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
server.keepAliveTimeout = 75_000;
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
