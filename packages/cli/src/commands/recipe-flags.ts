/** The recipe that a command's flags name: the file that says what trains. `materialize`, `explain` and `stats` read it alike. */
import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";
import { type Command, Option } from "commander";
import { readLaneRules } from "./lane-rules.js";

export interface RecipeFlags {
  recipe?: string;
  /** The earlier name of `recipe`. */
  policy?: string;
}

/** Adds `--recipe FILE`, and `--policy FILE` as its earlier name, which help does not show. */
export function recipeOption(command: Command, text: string): Command {
  return command
    .option("--recipe <file>", text)
    .addOption(new Option("--policy <file>", "earlier name of --recipe").conflicts("recipe").hideHelp());
}

/** The text of the recipe and the name of its file, or null when no flag names one. @throws TitoError `not_found`. */
export function recipeFile({ recipe, policy }: RecipeFlags): { text: string; name: string } | null {
  const name = recipe ?? policy;
  if (name === undefined) return null;
  try {
    return { text: readFileSync(name, "utf8"), name };
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    const why = code === "ENOENT" ? "it does not exist" : code === "EISDIR" ? "it is a directory" : code;
    throw new TitoError("not_found", `cannot read the recipe ${name}: ${why}`, { cause });
  }
}

/** The recipe as `materialize` would read it; undefined when no flag names one. @throws TitoError `not_found`, `usage`. */
export async function readRecipe(flags: RecipeFlags & { laneRules?: string[] }) {
  const file = recipeFile(flags);
  if (file === null && flags.laneRules === undefined) return undefined;
  const { loadPolicy } = await import("@tito/materializer");
  const overrides = { laneRules: await readLaneRules(flags.laneRules) };
  return file === null ? loadPolicy(null, overrides) : loadPolicy(file.text, overrides, file.name);
}
