/**
 * The closed list of pre-tokenizers. Each is known in two spellings: for this runtime, where it cuts text into pieces, and for tiktoken (Rust
 * regex), whose pieces the tests hold it to. The first spelling writes white space and case-insensitive contractions out, because the two
 * runtimes disagree about U+0085, U+FEFF and `(?i)`.
 */
import { TitoError } from "@tito/format";

export type SplitName = "qwen" | "qwen3.5" | "llama3" | "o200k" | "kimi" | "gpt2" | "deepseek" | "ascii";

export interface SplitPattern {
  /** What tiktoken gets in the tests. Matches every character of every text: the engine drops text that its pattern does not match. */
  engine: string;
  /** The same pieces in this runtime, as a regular expression with the flag `u`. */
  runtime: string;
  /** Unicode classes that the pattern asks for; characters outside the pinned ranges are classified by the engine, class by class. */
  classes: readonly string[];
}

/** White space as the Rust regex engine has it. */
const WS = "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const CONTRACTION = "'(?:[sSſ]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])";

const spaces = `[${WS}]*[\\r\\n]+|[${WS}]+(?![^${WS}])|[${WS}]+`;

const LLAMA3_HEAD = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|";
const LLAMA3_TAIL = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const QWEN = `${LLAMA3_HEAD}\\p{N}${LLAMA3_TAIL}`;
const LLAMA3 = `${LLAMA3_HEAD}\\p{N}{1,3}${LLAMA3_TAIL}`;
const llama3Runtime = (digits: string): string =>
  `${CONTRACTION}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^${WS}\\p{L}\\p{N}]+[\\r\\n]*|${spaces}`;

// Qwen 3.5: marks count as letters.
const QWEN35 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

const UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const o200k = (contraction: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${UPPER}*${LOWER}+(?:${contraction})?|[^\\r\\n\\p{L}\\p{N}]?${UPPER}+${LOWER}*(?:${contraction})?|\\p{N}{1,3}`;
const O200K_HF =
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// Kimi: Han runs of their own, then o200k's words without Han.
const HAN = "\\p{Script=Han}";
const KIMI_UPPER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]";
const KIMI_LOWER = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]";
const kimi = (upper: string, lower: string, contraction: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+(?:${contraction})?|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*(?:${contraction})?|\\p{N}{1,3}`;
const notHan = (set: string): string => `(?:(?!${HAN})${set})`;

// The demo's own: the shape of Qwen's with ASCII classes only, so that no Unicode version matters.
const ASCII_WS = " \\t\\n\\x0b\\f\\r";
const ASCII =
  "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\\r\\nA-Za-z0-9]?[A-Za-z]+|[0-9]" +
  `| ?[^${ASCII_WS}A-Za-z0-9]+[\\r\\n]*|[${ASCII_WS}]*[\\r\\n]+|[${ASCII_WS}]+(?![^${ASCII_WS}])|[${ASCII_WS}]+`;

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// DeepSeek cuts in three passes (digits, CJK, the rest). One pattern gives the same pieces when the classes of the third pass exclude
// what the first two took, and when what no pass matches stays a piece of its own.
const CJK = "一-龥぀-ゟ゠-ヿ";
const DEEPSEEK_PASSES = [
  "\\p{N}{1,3}",
  `[${CJK}]+`,
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];
const ASCII_PUNCTUATION = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]";
function deepseekEngine(): string {
  const minus = (set: string): string => `[${set}&&[^\\p{N}${CJK}]]`;
  const letters = minus("\\p{L}\\p{M}");
  const marks = minus("\\p{P}\\p{S}");
  const third =
    `${ASCII_PUNCTUATION}[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}\\p{N}${CJK}]?${letters}+| ?${marks}+[\\r\\n]*` +
    `|\\s*[\\r\\n]+|\\s+(?![^\\s\\p{N}${CJK}])|\\s+`;
  return `\\p{N}{1,3}|[${CJK}]+|${third}|(?:(?!${third})[^\\p{N}${CJK}])+`;
}
function deepseekRuntime(): string {
  const minus = (set: string): string => `(?:(?![\\p{N}${CJK}])[${set}])`;
  const third =
    `${ASCII_PUNCTUATION}[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}\\p{N}${CJK}]?${minus("\\p{L}\\p{M}")}+| ?${minus("\\p{P}\\p{S}")}+[\\r\\n]*` +
    `|[${WS}]*[\\r\\n]+|[${WS}]+(?![^${WS}\\p{N}${CJK}])|[${WS}]+`;
  return `\\p{N}{1,3}|[${CJK}]+|${third.replace(ASCII_PUNCTUATION, "[!-\\/:-@\\[-`{-~]")}|(?:(?!${third.replace(ASCII_PUNCTUATION, "[!-\\/:-@\\[-`{-~]")})[^\\p{N}${CJK}])+`;
}

export const SPLIT_PATTERNS: Record<SplitName, SplitPattern> = {
  ascii: { engine: ASCII, runtime: ASCII, classes: [] },
  qwen: { engine: QWEN, runtime: llama3Runtime("\\p{N}"), classes: ["L", "N"] },
  llama3: { engine: LLAMA3, runtime: llama3Runtime("\\p{N}{1,3}"), classes: ["L", "N"] },
  o200k: {
    engine: O200K_HF,
    runtime: `${o200k(CONTRACTION)}| ?[^${WS}\\p{L}\\p{N}]+[\\r\\n/]*|${spaces}`,
    classes: ["Lu", "Lt", "Lm", "Lo", "Ll", "M", "N"],
  },
  "qwen3.5": {
    engine: QWEN35,
    runtime: `${CONTRACTION}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^${WS}\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${spaces}`,
    classes: ["L", "M", "N"],
  },
  kimi: {
    engine: `[\\p{Han}]+|${kimi(KIMI_UPPER, KIMI_LOWER, "(?i:'s|'t|'re|'ve|'m|'ll|'d)")}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
    runtime: `${HAN}+|${kimi(notHan(UPPER), notHan(LOWER), CONTRACTION)}| ?[^${WS}\\p{L}\\p{N}]+[\\r\\n]*|${spaces}`,
    classes: ["Lu", "Lt", "Lm", "Lo", "Ll", "M", "N", "Script=Han"],
  },
  gpt2: {
    engine: GPT2,
    runtime: `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${WS}\\p{L}\\p{N}]+|[${WS}]+(?![^${WS}])|[${WS}]+`,
    classes: ["L", "N"],
  },
  deepseek: {
    engine: deepseekEngine(),
    runtime: deepseekRuntime(),
    classes: ["L", "M", "N", "P", "S"],
  },
};

interface PreTokenizer {
  type: string;
  pretokenizers?: PreTokenizer[];
  pattern?: { Regex?: string };
  behavior?: string;
  invert?: boolean;
  add_prefix_space?: boolean;
  use_regex?: boolean;
}

/** The splits of a `tokenizer.json` as the list of its regular expressions, or null when it holds anything else. */
function splitRegexes(pre: PreTokenizer | null | undefined): string[] | null {
  const steps = pre?.type === "Sequence" ? (pre.pretokenizers ?? []) : [pre];
  const regexes: string[] = [];
  for (const step of steps) {
    if (step?.type === "Split" && step.behavior === "Isolated" && step.invert !== true && step.pattern?.Regex) {
      regexes.push(step.pattern.Regex);
    } else if (step?.type === "ByteLevel" && step.add_prefix_space !== true) {
      if (step.use_regex !== false) regexes.push(GPT2);
    } else return null;
  }
  return regexes;
}

/**
 * Which of the known pre-tokenizers a `tokenizer.json` has.
 * @throws TitoError `unsupported` for any other: cutting text differently would give other ids without anybody noticing.
 */
export function splitNameOf(preTokenizer: unknown): SplitName {
  const regexes = splitRegexes(preTokenizer as PreTokenizer | null | undefined) ?? [];
  const known: [SplitName, string[]][] = [
    ["qwen", [QWEN]],
    ["qwen3.5", [QWEN35]],
    ["llama3", [LLAMA3]],
    ["o200k", [O200K_HF]],
    ["gpt2", [GPT2]],
    ["ascii", [ASCII]],
    ["deepseek", DEEPSEEK_PASSES],
  ];
  for (const [name, passes] of known) {
    if (passes.length === regexes.length && passes.every((pass, i) => pass === regexes[i])) return name;
  }
  throw new TitoError(
    "unsupported",
    `tokenizer.json has a pre-tokenizer that is not known: ${JSON.stringify(preTokenizer ?? null).slice(0, 400)}`,
    {
      hint: "Known are those of GPT-2, Llama 3 (also GLM), Qwen 2 to 3.5, gpt-oss (also MiniMax), DeepSeek V3, Kimi and the demo.",
    },
  );
}
