/** A chat template with its fixed surroundings: Python's view of the world, a frozen date, and the names of its special tokens. */
import {
  type AnyRuntimeValue,
  convertToRuntimeValues,
  Environment,
  FunctionValue,
  parse,
  StringValue,
  setupGlobals,
  tokenize,
} from "@huggingface/jinja";
import { TitoError } from "@tito/format";
import { ChunkInterpreter } from "./chunk-interpreter.js";

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const two = (value: number): string => String(value).padStart(2, "0");

/** Python's strftime for a date `YYYY-MM-DD` at midnight, in the C locale. */
function formatDate(date: string, format: string): string {
  const at = new Date(`${date}T00:00:00Z`);
  const month = MONTHS[at.getUTCMonth()]!;
  const day = DAYS[at.getUTCDay()]!;
  const parts: Record<string, string> = {
    Y: String(at.getUTCFullYear()),
    y: two(at.getUTCFullYear() % 100),
    m: two(at.getUTCMonth() + 1),
    d: two(at.getUTCDate()),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    H: "00",
    I: "12",
    M: "00",
    S: "00",
    p: "AM",
    "%": "%",
  };
  return format.replace(/%(.)/g, (whole, letter: string) => parts[letter] ?? whole);
}

class TemplateRaised extends Error {}

function frozenGlobals(date: string, names: Readonly<Record<string, string>>): Environment {
  const globals = new Environment();
  setupGlobals(globals);
  const now = (args: AnyRuntimeValue[]) => new StringValue(formatDate(date, String(args[0]?.value ?? "%Y-%m-%d")));
  globals.setVariable("strftime_now", new FunctionValue(now));
  const raise = (args: AnyRuntimeValue[]): never => {
    throw new TemplateRaised(String(args[0]?.value));
  };
  globals.setVariable("raise_exception", new FunctionValue(raise));
  for (const [name, value] of Object.entries(names)) globals.setVariable(name, convertToRuntimeValues(value));
  return globals;
}

export class ChatTemplate {
  readonly #interpreter: ChunkInterpreter;
  readonly #globals: Environment;

  /** `names`: variables that hold special tokens, such as bos_token. `date`: YYYY-MM-DD, what the template takes for today. @throws TitoError `bundle_invalid`. */
  constructor(source: string, names: Readonly<Record<string, string>>, date: string) {
    try {
      this.#interpreter = new ChunkInterpreter(parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })));
    } catch (cause) {
      throw new TitoError("bundle_invalid", `the chat template does not parse: ${String(cause)}`, { cause });
    }
    this.#globals = frozenGlobals(date, names);
  }

  /**
   * The template's output, in chunks that stay the same objects while their part of the conversation does.
   * @throws TitoError `bad_request` with the template's own words when it refuses the conversation.
   */
  render(variables: ReadonlyMap<string, AnyRuntimeValue>): string[] {
    const environment = new Environment(this.#globals);
    for (const [name, value] of variables) environment.setVariable(name, value);
    try {
      return this.#interpreter.chunks(environment);
    } catch (cause) {
      if (cause instanceof TemplateRaised)
        throw new TitoError("bad_request", `the chat template refuses: ${cause.message}`, { cause });
      throw new TitoError("bad_request", `the chat template cannot render this conversation: ${String(cause)}`, {
        cause,
      });
    }
  }
}
