/**
 * @tito/sidecar owns the one long-running program between a harness and an inference engine: gate, dialect, prompt, sample, decide, record.
 * It never holds training policy of any kind.
 */
export {};
