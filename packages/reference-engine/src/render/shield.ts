import { TitoError } from "@tito/format";
import { type JsonToken, jsonTokens } from "../json/tokens.js";

/**
 * Carries values through a template unharmed.
 *
 * Three things would not survive on their own: the text of a special token inside a value would come out as the token
 * (a tool result could forge a turn); a number would lose its spelling (`1.0` would be printed as `1`, where the reference
 * implementation prints `1.0`); and a key such as "10" would move to the front of its object. Each is replaced by a mark
 * between two private-use characters that the request does not contain, and put back once the ids of the
 * template's own markers are known.
 */
export class Shield {
  readonly #open: string;
  readonly #close: string;
  readonly #specials: readonly string[];
  readonly #numbers: string[] = [];

  /** `source`: every text the request and the template can bring in, JSON escapes included. */
  constructor(source: string, specials: readonly string[]) {
    const [open, close] = twoUnused(source);
    this.#open = open;
    this.#close = close;
    this.#specials = [...specials].sort((a, b) => b.length - a.length);
  }

  /** Parses JSON so that every number and the order of the keys keep what the text says. Throws SyntaxError. */
  parse(json: string): unknown {
    JSON.parse(json); // Marks could turn what is no JSON, such as 007, into something that is.
    let marked = "";
    let kept = 0;
    let previous: JsonToken | null = null;
    const replace = ({ text, start }: JsonToken, by: string) => {
      marked += json.slice(kept, start) + by;
      kept = start + text.length;
    };
    for (const token of jsonTokens(json)) {
      if (token.text === ":" && previous !== null) replace(previous, this.#markKey(previous.text));
      else if (/^[-\d]/.test(token.text)) replace(token, this.#markNumber(token.text));
      previous = token;
    }
    marked += json.slice(kept);
    return JSON.parse(marked);
  }

  /** Replaces the text of special tokens in every string and key of a value. */
  protect(value: unknown): unknown {
    if (typeof value === "string") return this.#protectText(value);
    if (Array.isArray(value)) return value.map((item) => this.protect(item));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.#protectText(key), this.protect(item)]));
  }

  /** Puts everything back into a piece of rendered text that holds no marker. */
  restore(text: string): string {
    if (!text.includes(this.#open)) return text;
    const { unquoted, mark } = this.#patterns();
    return text
      .replace(unquoted, (_, index: string) => this.#numbers[Number(index)] ?? "")
      .replace(mark, (_, kind: string, index: string) => {
        if (kind === "s") return this.#specials[Number(index)] ?? "";
        return kind === "n" ? (this.#numbers[Number(index)] ?? "") : "";
      });
  }

  #patterns(): { unquoted: RegExp; mark: RegExp } {
    // A number travels as a string, so `tojson` put it in quotes that are not its own.
    const unquoted = new RegExp(`"${this.#open}n(\\d+)${this.#close}"`, "g");
    return { unquoted, mark: new RegExp(`${this.#open}([snk])(\\d*)${this.#close}`, "g") };
  }

  #protectText(text: string): string {
    let out = text;
    this.#specials.forEach((special, index) => {
      if (out.includes(special)) out = out.replaceAll(special, `${this.#open}s${index}${this.#close}`);
    });
    return out;
  }

  #markKey(text: string): string {
    return /^"(?:0|[1-9]\d{0,9})"/.test(text) ? `"${this.#open}k${this.#close}${text.slice(1)}` : text;
  }

  #markNumber(text: string): string {
    const value = Number(text);
    const spelled = /[.eE]/.test(text) ? pythonFloat(value) : BigInt(text).toString();
    if (spelled === JSON.stringify(value)) return spelled;
    this.#numbers.push(spelled);
    return `"${this.#open}n${this.#numbers.length - 1}${this.#close}"`;
  }
}

/** A float as Python's `repr` and `json.dumps` spell it: shortest digits, always with a point or an exponent. */
function pythonFloat(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa = "", exponentText = "0"] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** Two private-use characters that occur in the text neither as themselves nor as a JSON escape. */
function twoUnused(source: string): [string, string] {
  const used = new Set(source.match(/[\uE000-\uF8FF]/g) ?? []);
  for (const escaped of source.matchAll(/\\u([ef][0-9a-f]{3})/gi)) {
    used.add(String.fromCharCode(Number.parseInt(escaped[1] ?? "", 16)));
  }
  const free: string[] = [];
  for (let code = 0xe000; code <= 0xf8ff && free.length < 2; code++) {
    const character = String.fromCharCode(code);
    if (!used.has(character)) free.push(character);
  }
  const [open, close] = free;
  if (open === undefined || close === undefined) {
    throw new TitoError("bad_request", "the request uses every private-use character; two must be free");
  }
  return [open, close];
}
