import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { TitoError } from "@tito/format";

/** The day that templates see: prompts must not change at midnight. */
const FROZEN_DAY = new Date(Date.UTC(2026, 0, 1));
const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** A model's chat template, parsed once, rendered the way vLLM renders it (block trimming as in transformers). */
export class ChatTemplate {
  readonly source: string;
  readonly #program: ReturnType<typeof parse>;

  constructor(source: string, where: string) {
    this.source = source;
    try {
      this.#program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    } catch (cause) {
      throw new TitoError("bundle_invalid", `engine: ${where} is not a template: ${messageOf(cause)}`, { cause });
    }
  }

  /** Renders. Whatever the template refuses is `bad_request`: vLLM answers 400 too. */
  render(variables: ReadonlyMap<string, unknown>): string {
    const environment = new Environment();
    for (const [name, value] of GLOBALS) environment.set(name, value);
    // A request may name a global; the template then sees the request's.
    for (const name of variables.keys()) environment.variables.delete(name);
    for (const [name, value] of variables) environment.set(name, value);
    try {
      return String(new Interpreter(environment).run(this.#program).value);
    } catch (cause) {
      throw new TitoError("bad_request", `the chat template refused the request: ${messageOf(cause)}`, { cause });
    }
  }
}

const GLOBALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
  [
    "raise_exception",
    (message: string) => {
      throw new Error(message);
    },
  ],
  ["range", range],
  ["strftime_now", strftimeFrozen],
]);

function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
  const length = Math.max(0, Math.ceil((to - from) / step));
  return Array.from({ length }, (_, index) => from + index * step);
}

function strftimeFrozen(format: string): string {
  const month = MONTHS[FROZEN_DAY.getUTCMonth()] ?? "";
  const weekday = DAYS[FROZEN_DAY.getUTCDay()] ?? "";
  const fields = new Map([
    ["Y", String(FROZEN_DAY.getUTCFullYear())],
    ["m", String(FROZEN_DAY.getUTCMonth() + 1).padStart(2, "0")],
    ["d", String(FROZEN_DAY.getUTCDate()).padStart(2, "0")],
    ["B", month],
    ["b", month.slice(0, 3)],
    ["A", weekday],
    ["a", weekday.slice(0, 3)],
    ["H", "00"],
    ["M", "00"],
    ["S", "00"],
  ]);
  return format.replace(/%(.)/g, (text, field: string) => (field === "%" ? "%" : (fields.get(field) ?? text)));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
