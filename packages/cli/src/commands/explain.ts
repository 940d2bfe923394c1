import { findTrajectories, TitoError } from "@tito/format";
import { collect, type Register, wholeNumber } from "./command.js";
import { type RecipeFlags, readRecipe, recipeOption } from "./recipe-flags.js";

interface ExplainFlags extends RecipeFlags {
  turn?: number;
  run?: string;
  sample?: number;
  token?: number;
  laneRules?: string[];
  rewards?: string;
  exclusions?: string;
  json?: boolean;
}

/** `tito explain`: which call produced a token and why it trains; where a call was put and why. */
export const registerExplain: Register = (program) => {
  const command = program
    .command("explain")
    .summary("which call produced a token and why it trains or not; why a call opened a segment")
    .description(
      "For a token: the call, turn, segment file and offset it comes from, its exact prefix with the digest computed again, and why it trains or not.\nFor a turn: the decision, the first token that differs with both sides in context, and the cause in the messages.",
    )
    .usage("PATH (--turn N | --run ID --sample I --token J)")
    .argument("<path...>", "with --turn a trajectory; else the trials as given to materialize")
    .option("--turn <n>", "number of the turn, in commit order from 0", wholeNumber("--turn"))
    .option("--run <id>", "run or trial id")
    .option("--sample <i>", "sample within the run, from 0", wholeNumber("--sample"))
    .option("--token <j>", "token within the sample, from 0", wholeNumber("--token"));
  recipeOption(command, "recipe, as given to materialize")
    .option("--lane-rules <file>", "lane rules, as given to materialize (repeatable)", collect)
    .option("--rewards <file>", "mapping file, as given to materialize: run ids may be known only from it")
    .option("--exclusions <file>", "verdicts, as given to materialize")
    .option("--json", "one JSON object")
    .action(async (paths: string[], flags: ExplainFlags) => {
      const { explainToken, explainTurn, renderTokenExplanation, renderTurnExplanation } = await import(
        "@tito/materializer"
      );
      const shared = { policy: await readRecipe(flags) };
      if (flags.turn !== undefined) {
        const explained = explainTurn({ path: oneTrajectory(paths), turn: flags.turn, ...shared });
        console.log(flags.json === true ? JSON.stringify(explained) : renderTurnExplanation(explained));
        return;
      }
      const { run, sample, token, rewards, exclusions } = flags;
      if (run === undefined || sample === undefined || token === undefined) {
        throw new TitoError("usage", "say what to explain", { hint: "--turn N, or --run ID --sample I --token J" });
      }
      const explained = explainToken({ paths, run, sample, token, rewards, exclusions, ...shared });
      console.log(flags.json === true ? JSON.stringify(explained) : renderTokenExplanation(explained));
    });
};

function oneTrajectory(paths: readonly string[]): string {
  const found = findTrajectories(paths);
  if (found.length === 1) return found[0]!;
  throw new TitoError("usage", `${paths.join(", ")} holds ${found.length} trajectories, --turn needs one`, {
    hint: found.slice(0, 5).join("\n  "),
  });
}
