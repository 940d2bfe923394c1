/**
 * @tito/reference-engine owns the embedded default inference server: a small deterministic policy behind a vLLM-compatible API, for the demo and for tests.
 * It never ships in the sidecar bundle.
 */
export {};
