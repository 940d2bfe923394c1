/**
 * @tito/renderer owns chat template, tokenizer and output parser of one model family as a renderer bundle, and the incremental junction with its certificate.
 * It never keeps state between calls, except caches, and never speaks HTTP.
 */
export { type Bundle, loadBundle } from "./bundle/load-bundle.js";
export { type MakeBundleOptions, makeBundle } from "./bundle/make-bundle.js";
export type { BundleManifest } from "./bundle/manifest.js";
export type { ModelFacts } from "./bundle/model-facts.js";
export { FAMILIES } from "./families/families.js";
export type { TextDelta, WholeTurn } from "./families/live-parser.js";
export {
  CERTIFICATE_FILE,
  type Certificate,
  type CertifiedShape,
  certificateId,
  RENDERER_VERSION,
  readCertificate,
  verifyCertificate,
} from "./junction/certificate.js";
export { type CertifyOptions, certify } from "./junction/certify.js";
export {
  buildIncrementalPrompt,
  type FallbackReason,
  type IncrementalPrompt,
  type IncrementalRequest,
} from "./junction/incremental-prompt.js";
export type { Shape, TurnEnd } from "./junction/shapes.js";
export {
  type ParsedTurn,
  PromptRenderer,
  type RenderOptions,
  type TemplateArguments,
  type TurnContext,
} from "./prompt-renderer.js";
export type { EncodedPrompt } from "./tokenizer/tokenizer.js";
export { isRendererThread, runRendererThread } from "./worker/renderer-thread.js";
export type { StartOptions } from "./worker/start-options.js";
export { type Renderer, startRenderer, type TurnStream } from "./worker/start-renderer.js";
