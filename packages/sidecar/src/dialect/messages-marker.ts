/** What the sidecar writes into a thinking block so that it knows it when it comes back. */
import { createHash } from "node:crypto";

/**
 * A thinking block needs a signature, which the harness echoes. Ours is a digest of the text: anyone can see whether the
 * block that came back is the one that was sent.
 */
export function signThinking(thinking: string): string {
  return `tito1.${createHash("sha256").update(thinking).digest("base64url").slice(0, 22)}`;
}
