import { describe, expect, it } from "vitest";
import { meaningOf } from "../../src/find/runner-exceptions.js";

const running = { agent_started: true, verifying: false };

const FAILING_MACHINES =
  `RateLimitError TooManyRequestsError rate_limit_error overloaded_error HTTPStatusError HTTPError ReadError WriteError
  ConnectError connect_timeout ReadTimeout TimeoutError timeout_error ClientConnectorError ClientPayloadError ServerDisconnectedError gaierror
  DNSLookupError ProxyError SSLError ECONNRESET IncompleteRead ServerError RetryError HealthCheckError EngineHealthCheckFailed EngineDeadError
  EngineCoreDeadError InferenceServerError DockerException APIError KubernetesError PodEvictedError NodeUnreachable PreemptedError
  SpotInterruption WorkerLost OOMKilled OutOfMemoryError CudaOutOfMemoryError MemoryError KeyboardInterrupt SystemExit ModalError DaytonaError`.split(
    /\s+/,
  );

describe("an exception that nobody gives a policy (O.170)", () => {
  it.each(FAILING_MACHINES)("%s is a machine's failure, with and without its module", (name) => {
    for (const type of [name, `some.module.errors.${name}`, `Some::Module::${name}`])
      expect(meaningOf(type, running)).toEqual({ termination: "env_error", counts: false });
  });

  it.each([
    ["AgentTimeoutError", "timeout"],
    ["ContextWindowExceededError", "context_overflow"],
    ["OutputLengthExceededError", "length"],
    ["NonZeroAgentExitCodeError", "agent_error"],
    ["AgentGaveUp", "agent_error"],
    ["ValueError", "agent_error"],
    ["JSONDecodeError", "agent_error"],
    ["FileNotFoundError", "agent_error"],
  ])("%s is the policy's doing, with and without its module", (name, termination) => {
    for (const type of [name, `litellm.exceptions.${name}`])
      expect(meaningOf(type, running)).toEqual({ termination, counts: true });
  });
});
