/**
 * What the sidecar writes into the items of a reply so that it knows them when the harness sends them back.
 * Item ids name the response they came from: items of one response are one assistant turn. The reasoning text travels in
 * `encrypted_content`, which harnesses echo untouched even where they drop the readable text.
 */
import { createHash } from "node:crypto";

const TEXT_MARKER = "tito1.";
const ITEM_ID = /^[a-z]+_t([0-9a-f]{16})_\d+$/;

/** Sixteen hex digits that stand for one response. */
export function responseKey(responseId: string): string {
  return createHash("sha256").update(responseId).digest("hex").slice(0, 16);
}

export function itemId(prefix: "rs" | "msg" | "fc" | "ctc", key: string, outputIndex: number): string {
  return `${prefix}_t${key}_${outputIndex}`;
}

/** The response that an echoed item came from, or null when the item is not ours. */
export function keyOfItemId(id: string | null): string | null {
  return id === null ? null : (ITEM_ID.exec(id)?.[1] ?? null);
}

export function packReasoning(text: string): string {
  return TEXT_MARKER + Buffer.from(text, "utf8").toString("base64url");
}

/** The text that {@link packReasoning} packed, or null when another server wrote it. */
export function unpackReasoning(encrypted: string | null): string | null {
  if (encrypted === null || !encrypted.startsWith(TEXT_MARKER)) return null;
  return Buffer.from(encrypted.slice(TEXT_MARKER.length), "base64url").toString("utf8");
}
