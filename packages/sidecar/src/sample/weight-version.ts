/** What an engine says of its weights: a name, or a word that stands where it has none. */
import type { EngineChunk } from "./engine-chunk.js";

/** vLLM's and SGLang's factory value, and what servers and proxies print where nobody set one. */
const PLACEHOLDERS: ReadonlySet<string> = new Set([
  "",
  "-",
  "default",
  "n/a",
  "na",
  "nil",
  "none",
  "null",
  "undefined",
  "unknown",
  "unset",
]);

export function isPlaceholder(version: string): boolean {
  return PLACEHOLDERS.has(version.trim().toLowerCase());
}

/** The version to record: what the engine says, or, where that names nothing, what the user says (`given`). Null: neither does. */
export function namedVersion(version: string | null, given: string | null): string | null {
  if (version === null || !isPlaceholder(version)) return version;
  return given ?? (version.trim() === "" ? null : version);
}

/** From one version to a later one, where it is not known when it changed; the first one is the oldest that it can have been. */
export function versionRange(from: string | null, to: string): string {
  return from === null || from === to ? to : `${from}..${to}`;
}

export function withNamedVersions(chunk: EngineChunk, given: string | null): EngineChunk {
  const { version, versions } = chunk;
  if (version === null && versions === null) return chunk;
  const spans = versions?.map((span) => ({ ...span, version: namedVersion(span.version, given) ?? "unknown" }));
  return { ...chunk, version: namedVersion(version, given), versions: spans ?? null };
}
