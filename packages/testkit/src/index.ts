/**
 * @tito/testkit owns what tests share: scripted engines, a fault disk, harness drivers, seeded random, deadlines.
 * It is never imported by shipped code.
 */
export {};
