/** Starts the renderer of a bundle, and what incremental mode needs of it. Its code is loaded only here: the engine source does without. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import type { Certificate, Renderer } from "@tito/renderer";
import type { SidecarConfig } from "../config/config.js";
import type { Log } from "../config/log.js";
import { type Incremental, shadowing } from "./incremental.js";

export interface OpenedRenderer {
  renderer: Renderer;
  /** Null in full history. */
  incremental: Incremental | null;
}

/** @throws TitoError `bundle_invalid` for a damaged bundle, or one without a certificate of its own in incremental mode. */
export async function openRenderer(config: SidecarConfig, log: Log): Promise<OpenedRenderer> {
  const { startRenderer, readCertificate, verifyCertificate, CERTIFICATE_FILE } = await import("@tito/renderer/thread");
  const renderer = await startRenderer(config.renderer, {
    onRestart: (restarts) => log("error", "renderer_restarted", { restarts }),
    onLost: dieOfIt,
  });
  try {
    if (config.promptMode === "full_history") return { renderer, incremental: null };
    const certificate: Certificate = readCertificate(
      await certificateText(config.certificate ?? join(config.renderer, CERTIFICATE_FILE), config.renderer),
    );
    verifyCertificate(certificate, renderer.contractId);
    return { renderer, incremental: { certificate, shadowed: shadowing(config.shadowRender) } };
  } catch (error) {
    await renderer.close();
    throw error;
  }
}

/** Nothing can be rendered any more: as of any bug, the process ends, and `tito run` starts it again. */
function dieOfIt(error: TitoError): void {
  setImmediate(() => {
    throw error;
  });
}

async function certificateText(file: string, bundle: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new TitoError("bundle_invalid", `incremental mode needs a certificate, and ${file} can not be read`, {
      cause,
      hint: `tito certify ${bundle} makes it`,
    });
  }
}
