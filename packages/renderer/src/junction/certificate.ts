/** What `tito certify` found out about a bundle's junction, and how incremental mode knows that it is about this bundle. */
import { createHash } from "node:crypto";
import { TitoError } from "@tito/format";
import { SHAPES, type Shape } from "./shapes.js";

/** Where a certificate is looked for when no other place is named: inside the bundle's directory, which does not count it among the bundle's files. */
export const CERTIFICATE_FILE = "certificate.json";

export const CERTIFICATE_SCHEMA = "tito.junction_certificate/v1";

/** Changes whenever the renderer could give other ids for the same bundle, or join otherwise: certificates of another version do not hold. */
export const RENDERER_VERSION = "3";

/** How many conversations of the shape were compared, and what stands between checkpoint and suffix. */
export interface CertifiedShape {
  conversations: number;
  stop_id: number;
  seam_ids: number[];
}

export interface Certificate {
  schema: typeof CERTIFICATE_SCHEMA;
  /** Contract id of the bundle. */
  bundle: string;
  renderer_version: string;
  seed: number;
  shapes: Partial<Record<Shape, CertifiedShape>>;
  refused: { shape: Shape; why: string }[];
}

/** What turns store as their junction's certificate: `certificate:` and a SHA-256 of its text. */
export const certificateId = (certificate: Certificate): string =>
  `certificate:${createHash("sha256").update(JSON.stringify(certificate)).digest("hex")}`;

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function isCertifiedShape(value: unknown): boolean {
  if (!isRecord(value) || !Array.isArray(value.seam_ids)) return false;
  return [value.conversations, value.stop_id, ...value.seam_ids].every((item) => Number.isInteger(item));
}

/** Reads a certificate's JSON. @throws TitoError `bundle_invalid` when it is none. */
export function readCertificate(text: string): Certificate {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TitoError("bundle_invalid", "the certificate is not JSON", { cause });
  }
  const shapes = isRecord(value) && isRecord(value.shapes) ? value.shapes : null;
  const sound =
    isRecord(value) &&
    value.schema === CERTIFICATE_SCHEMA &&
    shapes !== null &&
    Object.entries(shapes).every(
      ([name, shape]) => (SHAPES as readonly string[]).includes(name) && isCertifiedShape(shape),
    );
  if (!sound) throw new TitoError("bundle_invalid", `the certificate is not of schema ${CERTIFICATE_SCHEMA}`);
  return value as unknown as Certificate;
}

/**
 * Checks that the certificate is about this bundle and this renderer, and that it certifies anything at all.
 * @throws TitoError `bundle_invalid` saying what differs.
 */
export function verifyCertificate(certificate: Certificate, contractId: string): void {
  const refuse = (what: string): never => {
    throw new TitoError("bundle_invalid", `incremental mode has no certificate for this bundle: ${what}`, {
      hint: "Run tito certify BUNDLE_DIR and keep its certificate beside the bundle.",
    });
  };
  if (certificate.bundle !== contractId) refuse(`it is about ${certificate.bundle}, the bundle is ${contractId}`);
  if (certificate.renderer_version !== RENDERER_VERSION) {
    refuse(`it was made by renderer version ${certificate.renderer_version}, this is ${RENDERER_VERSION}`);
  }
  if (Object.keys(certificate.shapes).length === 0) refuse("it certifies no shape");
}
