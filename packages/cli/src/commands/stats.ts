import { INTERRUPTED_EXIT, interruptible } from "../interrupt.js";
import { startProgress } from "../progress.js";
import { renderTable } from "../table.js";
import { collect, type Register } from "./command.js";
import { type RecipeFlags, readRecipe, recipeOption } from "./recipe-flags.js";

interface StatsFlags extends RecipeFlags {
  laneRules?: string[];
  rewards?: string;
  exclusions?: string;
  notes?: string;
  json?: boolean;
}

/** `tito stats`: figures across all trials. */
export const registerStats: Register = (program, outcome) => {
  const command = program
    .command("stats")
    .summary("figures across trials: what trains, what was lost and why, what splitting costs")
    .description(
      "Figures across all runs below PATH: sampled tokens captured, eligible, trained and masked by reason; drift by cause; what splitting costs and what each realign bound would save and lose; lengths, log probabilities, cached tokens, weight versions, endings; per harness and model. Runs that are damaged, locked, open or of a later format version are named, and the others counted; see docs/across.md.",
    )
    .argument("<path...>", "trial, job or trajectory directories");
  recipeOption(command, "recipe, as given to materialize")
    .option("--lane-rules <file>", "lane rules, as given to materialize (repeatable)", collect)
    .option("--rewards <file>", "mapping file, as given to materialize")
    .option("--exclusions <file>", "verdicts, as given to materialize")
    .option("--notes <file>", "note finished runs here; after a Ctrl-C the same command goes on where it stopped")
    .option("--json", "one JSON object (tito.stats/v1)")
    .action(async (paths: string[], flags: StatsFlags) => {
      const { renderStats, statsOf } = await import("@tito/materializer");
      const { rewards, exclusions, notes } = flags;
      const policy = await readRecipe(flags);
      const progress = startProgress("counting");
      const { signal, release } = interruptible();
      const { stats, done, total } = await statsOf({
        ...{ paths, policy, rewards, exclusions, notes, signal },
        onProgress: (at) => progress.update(at.done, at.total),
      }).finally(() => {
        release();
        progress.finish();
      });
      if (stats === null) {
        outcome.exitCode = INTERRUPTED_EXIT;
        const how =
          notes === undefined ? "with --notes FILE the next one could go on here" : "the same command goes on here";
        console.error(`tito: stopped after ${done} of ${total} runs; ${how}`);
        return;
      }
      if (flags.json === true) console.log(JSON.stringify(stats));
      else
        for (const { title, columns, rows } of renderStats(stats))
          console.log(`${title}\n${indent(renderTable(columns, rows))}\n`);
    });
};

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
