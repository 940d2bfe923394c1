/**
 * @tito/renderer owns chat template, tokenizer and output parser of one model family as a renderer bundle, and the incremental junction with its certificate.
 * It never keeps state between calls, except caches, and never speaks HTTP.
 */
export {};
