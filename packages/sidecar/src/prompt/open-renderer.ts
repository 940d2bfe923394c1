/** Starts the renderer of a bundle, and what incremental mode needs of it. Its code is loaded only here: the engine source does without. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import type { Certificate, Renderer } from "@tito/renderer";
import type { SidecarConfig } from "../config.js";
import { type Incremental, shadowing } from "./incremental.js";

/** Where `tito certify` leaves a certificate when it is not told otherwise: inside the bundle, which does not count it among its files. */
export const CERTIFICATE_FILE = "certificate.json";

export interface OpenedRenderer {
  renderer: Renderer;
  /** Null in full history. */
  incremental: Incremental | null;
}

/** @throws TitoError `bundle_invalid` for a damaged bundle, or one without a certificate of its own in incremental mode. */
export async function openRenderer(config: SidecarConfig): Promise<OpenedRenderer> {
  const { startRenderer, readCertificate, verifyCertificate } = await import("@tito/renderer");
  const renderer = await startRenderer(config.renderer);
  try {
    if (config.promptMode === "full_history") return { renderer, incremental: null };
    const certificate: Certificate = readCertificate(await certificateText(config));
    verifyCertificate(certificate, renderer.contractId);
    return { renderer, incremental: { certificate, shadowed: shadowing(config.shadowRender) } };
  } catch (error) {
    await renderer.close();
    throw error;
  }
}

async function certificateText(config: SidecarConfig): Promise<string> {
  const file = config.certificate ?? join(config.renderer, CERTIFICATE_FILE);
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new TitoError("bundle_invalid", `incremental mode needs a certificate, and ${file} can not be read`, {
      cause,
      hint: `tito certify ${config.renderer} makes it`,
    });
  }
}
