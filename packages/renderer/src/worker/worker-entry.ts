/** Entry of the renderer's thread. */
import { runRendererThread } from "./renderer-thread.js";

runRendererThread();
