// One process that starts the renderer, renders once and says how long it took since its own start.
import { startRenderer } from "../../packages/renderer/dist/thread.js";

const renderer = await startRenderer(process.argv[2]);
await renderer.render([{ role: "user", content: "Hello there" }], []);
console.log(JSON.stringify({ first_encode_ms: performance.now(), rss_mb: process.memoryUsage().rss / 1e6 }));
await renderer.close();
