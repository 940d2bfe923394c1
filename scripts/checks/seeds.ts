/**
 * Tests say the same every time: nothing that steers one comes from the clock, from the machine's entropy or from its speed.
 * Fresh seeds belong to `npm run check:full fresh-seeds`, which prints them and can replay them.
 */
import { type Finding, lineAt, type SourceFile } from "./finding.js";

/** Tests, what they share, and the scripts that run them. The checks themselves name what they forbid. */
const SUBJECT = /(^|\/)tests?\/|^packages\/testkit\/src\/|^scripts\//;
const EXEMPT = /^scripts\/checks\/|^scripts\/test\/checks\.test\.ts$/;
/** Where the one fixed seed is set, and where fresh ones are drawn. */
const SETS_SEEDS = new Set(["scripts/test/fixed-seed.ts", "scripts/check-full.ts"]);

const CLOCK = String.raw`(?:Date\.now|performance\.now|process\.hrtime|new Date\b)`;

const SCRIPT_RULES: readonly [RegExp, string][] = [
  [/\bMath\.random\b/g, "random without a seed"],
  [/\b(?:randomBytes|randomInt|randomUUID|randomFill(?:Sync)?|getRandomValues)\b/g, "random without a seed"],
  [new RegExp(String.raw`\bseed\w*\b[^;\n]*(?:${CLOCK}|process\.pid)`, "gi"), "a seed from the clock"],
  [/\bDate\.now\(\)\s*%/g, "a seed from the clock"],
  [
    /\b(?:interruptAfterTimeLimit|skipAllAfterTimeLimit|TITO_FUZZ_MS)\b/g,
    "a count of runs that the machine's speed decides",
  ],
  [
    new RegExp(
      String.raw`\b(?:while|for|if)\s*\([^\n]*${CLOCK}\(?\)?[^\n]*\)\s*(?:\{\s*)?(?:break|return|await|continue)`,
      "g",
    ),
    "a loop that the clock ends",
  ],
  [/\bconfigureGlobal\b/g, "the seed of all property tests is set in scripts/test/fixed-seed.ts alone"],
];

const PYTHON_RULES: readonly [RegExp, string][] = [
  [
    /(?<![\w.])random\.(?:random|randint|randrange|choices?|shuffle|sample|uniform|gauss|getrandbits)\(/g,
    "random without a seed",
  ],
  [/\b(?:Random|default_rng|RandomState)\(\s*\)/g, "random without a seed"],
  [/\bnp\.random\.(?:rand|randn|randint|random|choice|permutation|shuffle)\(/g, "random without a seed"],
  [/\b(?:os\.urandom|secrets\.token_\w+)\(/g, "random without a seed"],
  [/\bseed\(\s*(?:time\.|None|\))/g, "a seed from the clock"],
];

export function checkSeeds(files: readonly SourceFile[]): Finding[] {
  return files.filter(({ path }) => SUBJECT.test(path) && !EXEMPT.test(path)).flatMap(checkFile);
}

/** Test files that draw something: those that a fresh seed says something new about. */
export function findSeededTests(files: readonly SourceFile[]): string[] {
  const drawing = files.filter(
    ({ path, text }) => path.endsWith(".test.ts") && /"fast-check"|\bTITO_SEED\b/.test(text),
  );
  return drawing
    .map(({ path }) => path)
    .filter((path) => !EXEMPT.test(path) && !/\.(?:e2e|crash)\.test\.ts$/.test(path));
}

function checkFile(file: SourceFile): Finding[] {
  return rulesOf(file).flatMap(([pattern, message]) =>
    [...file.text.matchAll(pattern)].map((match) => ({
      check: "seeds",
      path: file.path,
      line: lineAt(file.text, match.index),
      message: `${match[0]}: ${message}`,
    })),
  );
}

function rulesOf({ path, text }: SourceFile): readonly [RegExp, string][] {
  if (SETS_SEEDS.has(path)) return [];
  if (/\.[cm]?[jt]s$/.test(path)) return SCRIPT_RULES;
  if (path.endsWith(".sh")) return [[/\$\{?RANDOM\b/g, "random without a seed"]];
  if (!path.endsWith(".py")) return [];
  return text.includes("manual_seed(")
    ? PYTHON_RULES
    : [...PYTHON_RULES, [/\btorch\.(?:rand|randn|randint|randperm|bernoulli|multinomial)\(/g, "random without a seed"]];
}
