/**
 * What a program needs that has the renderer in a thread: start it, ask it, and read the certificate. Loads neither template engine nor tokenizer;
 * those are loaded by the thread.
 */
export { CERTIFICATE_FILE, type Certificate, readCertificate, verifyCertificate } from "./junction/certificate.js";
export type { StartOptions } from "./worker/start-options.js";
export { type Renderer, startRenderer } from "./worker/start-renderer.js";
