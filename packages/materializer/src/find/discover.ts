/** Finds trials and trajectories under the given paths. I/O edge: reads directory names and the small files of a trial. */
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import { TitoError } from "@tito/format";
import { compareText } from "../read/order.js";
import { isForbidden } from "../read/read.js";
import { parseHarborResult, parseRewardJson, parseRewardText, type TrialFacts } from "./harbor.js";

/** A trial directory and the trajectories below it. `facts` is null when no trial runner left anything. */
export interface FoundTrial {
  dir: string;
  facts: TrialFacts | null;
  trajectories: string[];
}

const DEPTH_MAX = 24;
const TRIAL_FILE_BYTES_MAX = 64 << 20;
/** Where a plain trial keeps its reward, first match wins. */
const REWARD_FILES = ["reward.json", "reward.txt", join("verifier", "reward.json"), join("verifier", "reward.txt")];

/**
 * Every trial below `paths`, sorted by directory. A trajectory belongs to the nearest directory at or above it (not above the
 * given path) that is a trial; without one it is a trial of its own. Links are not followed.
 * Errors: `not_found` for a path that does not exist, `usage` for one that is no directory.
 */
export function findTrials(paths: readonly string[]): FoundTrial[] {
  const trials = new Map<string, FoundTrial>();
  const seen = new Set<string>();
  const roots = paths.map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) throw new TitoError("not_found", `${path} does not exist`);
    if (!stat.isDirectory()) {
      const hint = "name a trial, job or trajectory directory";
      throw new TitoError("usage", `${path} is not a directory`, { hint });
    }
    return realpathSync(path);
  });
  // Parents first, so that it does not matter in which order overlapping paths are given.
  for (const dir of roots.sort((a, b) => a.length - b.length)) walk({ dir, depth: 0, trial: null }, trials, seen);
  return [...trials.values()].sort((a, b) => compareText(a.dir, b.dir));
}

interface Place {
  dir: string;
  depth: number;
  trial: FoundTrial | null;
}

/** A directory that this user may not read may be a trial: it becomes one without trajectories that says so, and the others are found. */
function walk(place: Place, trials: Map<string, FoundTrial>, seen: Set<string>): void {
  try {
    walkInto(place, trials, seen);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const trial = trialAt(trials, place.trial?.dir ?? place.dir, place.trial?.facts ?? NO_FACTS);
    const { code, path } = error as NodeJS.ErrnoException;
    const problem = `${relative(trial.dir, path ?? place.dir) || "the directory"} cannot be read (${code})`;
    trial.facts = { ...(trial.facts ?? NO_FACTS), problems: [...(trial.facts ?? NO_FACTS).problems, problem] };
  }
}

const NO_FACTS: TrialFacts = {
  kind: "plain",
  trial_name: null,
  task: { id: null, source: null },
  environment: { kind: null, image: null },
  failure: null,
  reward_not_valid: null,
  doubts: [],
  steps: 0,
  scores: new Map(),
  scores_source: null,
  problems: [],
};

function walkInto(place: Place, trials: Map<string, FoundTrial>, seen: Set<string>): void {
  if (place.depth > DEPTH_MAX || seen.has(place.dir) || !lstatSync(place.dir).isDirectory()) return;
  seen.add(place.dir);
  const facts = readTrialFacts(place.dir);
  // A result that cannot be read may be the job's: it makes a trial only where a trajectory has no nearer one.
  const broken = facts !== null && facts.scores_source === null && facts.problems.length > 0;
  const trial =
    facts === null
      ? place.trial
      : broken
        ? { dir: place.dir, facts, trajectories: [] }
        : trialAt(trials, place.dir, facts);
  if (isTrajectoryDir(place.dir)) {
    const owner = trial === null ? trialAt(trials, place.dir, null) : trialAt(trials, trial.dir, trial.facts);
    owner.trajectories.push(place.dir);
    return;
  }
  const names = readdirSync(place.dir, { withFileTypes: true });
  for (const entry of names.sort((a, b) => compareText(a.name, b.name))) {
    if (entry.isDirectory()) walk({ dir: join(place.dir, entry.name), depth: place.depth + 1, trial }, trials, seen);
  }
}

/** The same test as the reader's `findTrajectories`; Harbor writes a manifest.json of its own beside artifacts, which is none. */
function isTrajectoryDir(dir: string): boolean {
  const names = readdirSync(dir);
  if (names.some((name) => /^journal(-\d{4})?\.seg$/.test(name))) return true;
  if (names.includes("segments") && readNames(join(dir, "segments")).some((name) => name.endsWith(".seg"))) return true;
  const manifest = names.includes("manifest.json") ? readText(join(dir, "manifest.json")) : null;
  return manifest?.includes('"tito.manifest/') ?? false;
}

function readNames(dir: string): string[] {
  return lstatSync(dir).isDirectory() ? readdirSync(dir) : [];
}

function trialAt(trials: Map<string, FoundTrial>, dir: string, facts: TrialFacts | null): FoundTrial {
  const known = trials.get(dir);
  if (known) return known;
  const trial = { dir, facts, trajectories: [] };
  trials.set(dir, trial);
  return trial;
}

/** What a directory says about a trial; null when it is none. A reward file inside `verifier/` belongs to the directory above. */
function readTrialFacts(dir: string): TrialFacts | null {
  if (basename(dir) === "verifier") return null;
  const result = readText(join(dir, "result.json"));
  const parsed = result === null ? null : parseHarborResult(result);
  const harbor = typeof parsed === "string" ? null : parsed;
  if (harbor && harbor.scores.size > 0) return harbor;
  const plain = readRewardFile(dir);
  if (harbor) return plain ? { ...harbor, ...plain } : harbor;
  if (plain === null && typeof parsed !== "string") return null;
  return {
    ...NO_FACTS,
    reward_not_valid: plainNotValid(plain?.scores, plain?.scores_source, parsed),
    scores: plain?.scores ?? new Map(),
    scores_source: plain?.scores_source ?? null,
    problems: [...(typeof parsed === "string" ? [parsed] : []), ...(plain?.problems ?? [])],
  };
}

/** A result beside the reward that cannot be read may say that the reward does not count: unknown is not valid. */
function plainNotValid(
  scores: TrialFacts["scores"] | undefined,
  source: string | null | undefined,
  unread: TrialFacts | string | null,
): string | null {
  if (scores?.get("reward_valid") === false) return `${source} says so`;
  return typeof unread === "string" && (scores?.size ?? 0) > 0 ? `${unread}, which would say whether it counts` : null;
}

function readRewardFile(dir: string): Pick<TrialFacts, "scores" | "scores_source" | "problems"> | null {
  for (const file of REWARD_FILES) {
    const text = readText(join(dir, file));
    if (text === null) continue;
    const scores = file.endsWith(".json") ? parseRewardJson(text) : parseRewardText(text);
    // An unreadable reward is a trial with an unknown reward, never a zero.
    const source = file.split(sep).join("/");
    const problems = scores === null ? [`${source} holds no reward`] : [];
    return { scores: scores ?? new Map(), scores_source: source, problems };
  }
  return null;
}

function readText(file: string): string | null {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > TRIAL_FILE_BYTES_MAX) return null;
  return readFileSync(file, "utf8");
}
