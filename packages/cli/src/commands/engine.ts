import { Option } from "commander";
import { given, type Register, wholeNumber } from "./command.js";

interface EngineFlags {
  weights?: string;
  policy?: string;
  host?: string;
  port?: number;
  seed?: number;
  model?: string;
  maxModelLen?: number;
  logprobsMode?: "raw" | "processed";
  tokenDelayMs?: number;
  endpointFile?: string;
  log?: string;
  testMode?: boolean;
  promptTokensDetails?: boolean;
}

/** `tito engine`: the embedded inference server, until it gets SIGTERM or SIGINT. */
export const registerEngine: Register = (program) => {
  program
    .command("engine")
    .summary("the embedded inference server: a small policy behind vLLM's API")
    .description(
      "Serves a small language model of our own behind the wire shapes of vLLM (/v1/chat/completions, /v1/completions, /tokenize …), for demos and tests.\nPrints one JSON line with its URL once it accepts connections.",
    )
    .option("--weights <dir>", "a complete Hugging Face model directory (default: the policy of this repository)")
    .option(
      "--policy <policy>",
      "lm: the model samples · script:FILE: answers of a script, for tests of harnesses (default: lm)",
    )
    .option("--model <name>", "model id that requests must name (default: policy)")
    .option("--host <host>", "address to listen on (default: 127.0.0.1)")
    .option("--port <port>", "port to listen on, 0 for any free one (default: 0)", wholeNumber("--port"))
    .option("--seed <n>", "seed of requests that bring none (default: 0)", wholeNumber("--seed"))
    .option("--max-model-len <tokens>", "prompt and sampled tokens together", wholeNumber("--max-model-len", 1))
    .addOption(
      new Option("--logprobs-mode <mode>", "raw or processed (default: processed)").choices(["raw", "processed"]),
    )
    .option("--token-delay-ms <ms>", "wait before each sampled token (default: 0)", wholeNumber("--token-delay-ms"))
    .option("--prompt-tokens-details", "report cached prompt tokens in usage")
    .option("--endpoint-file <file>", "write the endpoint as JSON once connections are accepted")
    .option("--log <file>", "one NDJSON line a choice: the exact ids seen and sampled")
    .option("--test-mode", "open the /test routes: faults, holds, weight versions, log")
    .action(async (flags: EngineFlags) => {
      const { startEngine } = await import("@tito/reference-engine");
      const { log, ...rest } = flags;
      const engine = await startEngine(given({ ...rest, logFile: log }));
      console.log(
        JSON.stringify({ schema: "tito.engine_endpoint/v1", pid: process.pid, url: engine.url, port: engine.port }),
      );
      await stopSignal();
      await engine.close();
    });
};

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", () => resolve());
    process.once("SIGINT", () => resolve());
  });
}
