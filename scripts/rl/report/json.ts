/** The run as one JSON document (`--json`, results.json). */
import type { Flags } from "../flags.js";
import type { ArmResult, PooledArm } from "./pooled.js";

/** Keys are snake_case, as in all records of the product; shares have counts beside them. */
export function resultsJson(flags: Flags, results: readonly ArmResult[], arms: readonly PooledArm[]): string {
  const document = {
    schema: "tito.demo_rl/v1",
    options: snake(flags.loop),
    seeds: flags.seeds,
    arms: arms.map(({ heldOut, ...arm }) => ({
      ...(snake(arm) as object),
      held_out: [...heldOut].map(([version, share]) => ({ version, ...share })),
    })),
    runs: results.map(({ arm, seed, rows, heldOut }) => ({
      arm,
      seed,
      iterations: rows.map(snake),
      held_out: [...heldOut].map(([version, one]) => ({ version, ...one })),
    })),
  };
  return `${JSON.stringify(document, undefined, 1)}\n`;
}

/** Keys of an object and of the objects in it, in snake_case. */
function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snake(one),
    ]),
  );
}
