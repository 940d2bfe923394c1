/** The harnesses that tito can set up. */
import { TitoError } from "@tito/format";
import type { HarnessAdapter } from "./adapter.js";
import { claudeCode } from "./claude-code.js";
import { codex } from "./codex.js";
import { miniSweAgent } from "./mini-swe-agent.js";
import { opencode } from "./opencode.js";
import { pi } from "./pi.js";

export const HARNESSES: readonly HarnessAdapter[] = [pi, opencode, miniSweAgent, codex, claudeCode];

/** @throws TitoError `usage` with the list of names. */
export function findHarness(name: string): HarnessAdapter {
  const found = HARNESSES.find((adapter) => adapter.name === name);
  if (found !== undefined) return found;
  throw new TitoError("usage", `no harness is called ${JSON.stringify(name)}`, {
    hint: `known: ${HARNESSES.map((adapter) => adapter.name).join(", ")}`,
  });
}
