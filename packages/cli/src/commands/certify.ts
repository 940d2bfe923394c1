import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TitoError } from "@tito/format";
import type { Certificate } from "@tito/renderer";
import { startProgress } from "../progress.js";
import { formatCount, renderTable } from "../table.js";
import { given, type Register, wholeNumber } from "./command.js";

interface CertifyFlags {
  conversations?: number;
  seed?: number;
  out?: string;
  json?: boolean;
}

/** `tito certify`: derive a bundle's junction, test it, write down what holds. 0 something is certified · 1 nothing is. */
export const registerCertify: Register = (program, outcome) => {
  program
    .command("certify")
    .summary("test the incremental junction of a renderer bundle, write its certificate")
    .description(
      "Generates conversations of every shape and compares the incremental prompt with the full rendering, id for id; a checkpoint of other tokens of the same text must survive untouched.\nThe certificate holds for this bundle and this renderer version only; --tito-prompt-mode incremental refuses to start without it.\nExit codes: 0 at least one shape is certified · 1 none is.",
    )
    .argument("<bundle>", "a directory that tito bundle made")
    .option("--conversations <n>", "generated for each shape (default: 40)", wholeNumber("--conversations", 1))
    .option("--seed <n>", "of the generated conversations (default: 1)", wholeNumber("--seed"))
    .option("--out <file>", "the certificate (default: certificate.json in the bundle)")
    .option("--json", "print the certificate as JSON")
    .action(async (bundle: string, flags: CertifyFlags) => {
      const { CERTIFICATE_FILE, certificateId, certify, loadBundle, PromptRenderer } = await import("@tito/renderer");
      const renderer = await PromptRenderer.open(await loadBundle(bundle));
      const progress = startProgress("certifying shapes");
      const { out = join(bundle, CERTIFICATE_FILE), json, conversations, seed } = flags;
      const certificate = certify(renderer, {
        ...given({ conversations, seed }),
        onProgress: (done, total) => progress.update(done, total),
      });
      progress.finish();
      await writeCertificate(out, certificate);
      if (Object.keys(certificate.shapes).length === 0) outcome.exitCode = 1;
      console.log(
        json === true ? JSON.stringify(certificate) : renderCertificate(certificate, certificateId(certificate), out),
      );
    });
};

/** The file is there whole, or as it was before. */
async function writeCertificate(out: string, certificate: Certificate): Promise<void> {
  const partial = `${out}.partial-${process.pid}`;
  try {
    await writeFile(partial, `${JSON.stringify(certificate, null, 2)}\n`);
    await rename(partial, out);
  } catch (cause) {
    await rm(partial, { force: true });
    throw new TitoError("cannot_write", `cannot write the certificate ${out}`, { cause });
  }
}

function renderCertificate(certificate: Certificate, id: string, out: string): string {
  const shapes = Object.entries(certificate.shapes);
  const rows = shapes.map(([shape, { conversations, stop_id, seam_ids }]) => [
    shape,
    formatCount(conversations),
    String(stop_id),
    seam_ids.join(" "),
  ]);
  const columns = [
    { title: "certified shape" },
    { title: "conversations", align: "right" as const },
    { title: "stop id", align: "right" as const },
    { title: "seam ids" },
  ];
  return [
    rows.length === 0 ? "no shape is certified" : renderTable(columns, rows),
    ...(certificate.refused.length === 0 ? [] : ["", "not certified, these fall back to full history:"]),
    ...certificate.refused.map(({ shape, why }) => `  ${shape}: ${why}`),
    "",
    `bundle ${certificate.bundle}`,
    `renderer version ${certificate.renderer_version} · ${id}`,
    `written to ${out}`,
  ].join("\n");
}
