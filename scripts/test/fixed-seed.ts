/**
 * Runs before every test file: property tests draw from one fixed seed, so that a run says the same every time and everywhere.
 * `npm run check:full fresh-seeds` sets another seed in TITO_SEED, prints it, and so replays it.
 */
import fc from "fast-check";

/** The seed of a plain run. */
const PLAIN_SEED = 20_261_201;

fc.configureGlobal({ seed: Number(process.env.TITO_SEED ?? PLAIN_SEED) });
