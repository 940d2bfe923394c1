/**
 * The small expression language of the recipe: arithmetic, comparison and a few functions over named values.
 * No access to anything but the given values. Grammar and null rules: docs/recipe.md#expressions.
 */
import { TitoError } from "@tito/format";

export type Value = number | string | boolean | null;

/** Names an expression can see. `lookup` returns undefined for an unknown name; `exists` answers `exists("glob")`. */
export interface Scope {
  lookup(name: string): Value | undefined;
  exists(pattern: string): boolean;
  /** `score("tests-passed")`: a score whose name is not a plain word. */
  score(name: string): Value;
}

export type Expression = (scope: Scope) => Value;

const TOKEN =
  /\s*(?:((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|("(?:[^"\\]|\\["\\])*"|'(?:[^'\\]|\\['\\])*')|([A-Za-z_]\w*(?:\.\w+)*)|(==|!=|<=|>=|&&|\|\||[-+*/%()<>,!?:]))/y;
const DEPTH_MAX = 100;

interface Token {
  kind: "number" | "string" | "name" | "op";
  text: string;
}

/** Compiles `source`; errors are `usage` and name `where` it stands. */
export function compileExpression(source: string, where: string): Expression {
  const parser = new Parser(tokenize(source, where), where, source);
  return parser.whole();
}

function tokenize(source: string, where: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (!match) throw new TitoError("usage", `${where}: cannot read "${source.slice(at)}" in "${source}"`);
    const [, number, string, name, op] = match;
    if (number !== undefined) tokens.push({ kind: "number", text: number });
    else if (string !== undefined) tokens.push({ kind: "string", text: string.slice(1, -1).replace(/\\(.)/g, "$1") });
    else if (name !== undefined) tokens.push({ kind: "name", text: name });
    else tokens.push({ kind: "op", text: op! });
  }
  return tokens;
}

const WORDS: ReadonlySet<string> = new Set(["and", "or", "not", "null", "true", "false"]);

/** The names that an expression reads, those in `score("…")` included, each once. Errors as {@link compileExpression}. */
export function namesIn(source: string, where: string): string[] {
  const tokens = tokenize(source, where);
  const names = tokens.flatMap(({ kind, text }, i) => {
    const isScore = kind === "string" && tokens[i - 1]?.text === "(" && tokens[i - 2]?.text === "score";
    if (isScore) return [`scores.${text}`];
    return kind === "name" && !WORDS.has(text) && tokens[i + 1]?.text !== "(" ? [text] : [];
  });
  return [...new Set(names)];
}

/** Weakest first. `or`, `and`, `not` are the same as `||`, `&&`, `!`. */
const LEVELS: readonly (readonly string[])[] = [
  ["||", "or"],
  ["&&", "and"],
  ["==", "!=", "<", "<=", ">", ">="],
  ["+", "-"],
  ["*", "/", "%"],
];

class Parser {
  private at = 0;
  private depth = 0;

  constructor(
    private readonly tokens: Token[],
    private readonly where: string,
    private readonly source: string,
  ) {}

  whole(): Expression {
    const expression = this.ternary();
    if (this.at < this.tokens.length) this.fail(`unexpected "${this.tokens[this.at]!.text}"`);
    return expression;
  }

  private fail(what: string): never {
    throw new TitoError("usage", `${this.where}: ${what} in "${this.source}"`, { hint: "see docs/recipe.md" });
  }

  private take(...texts: readonly string[]): string | null {
    const token = this.tokens[this.at];
    if (!token || (token.kind !== "op" && token.kind !== "name") || !texts.includes(token.text)) return null;
    this.at += 1;
    return token.text;
  }

  private expect(text: string): void {
    if (this.take(text) === null) this.fail(`"${text}" expected`);
  }

  private ternary(): Expression {
    this.depth += 1;
    if (this.depth > DEPTH_MAX) this.fail("too deeply nested");
    const test = this.binary(0);
    let result = test;
    if (this.take("?") !== null) {
      const yes = this.ternary();
      this.expect(":");
      const no = this.ternary();
      result = (scope) => (truthy(test(scope)) ? yes(scope) : no(scope));
    }
    this.depth -= 1;
    return result;
  }

  private binary(level: number): Expression {
    const operators = LEVELS[level];
    if (operators === undefined) return this.unary();
    let left = this.binary(level + 1);
    for (let op = this.take(...operators); op !== null; op = this.take(...operators)) {
      const [a, b, operator] = [left, this.binary(level + 1), op];
      if (operator === "||" || operator === "or") left = (scope) => truthy(a(scope)) || truthy(b(scope));
      else if (operator === "&&" || operator === "and") left = (scope) => truthy(a(scope)) && truthy(b(scope));
      else left = (scope) => apply(operator, a(scope), b(scope));
    }
    return left;
  }

  private unary(): Expression {
    this.depth += 1;
    if (this.depth > DEPTH_MAX) this.fail("too deeply nested");
    const operator = this.take("-", "!", "not");
    const inner = operator === null ? this.primary() : this.unary();
    this.depth -= 1;
    if (operator === null) return inner;
    if (operator === "-") return (scope) => apply("-", 0, inner(scope));
    return (scope) => !truthy(inner(scope));
  }

  private primary(): Expression {
    const token = this.tokens[this.at];
    if (!token) return this.fail("the expression ends too early");
    this.at += 1;
    if (token.kind === "number") return constant(Number(token.text));
    if (token.kind === "string") return constant(token.text);
    if (token.kind === "op") {
      if (token.text !== "(") this.fail(`unexpected "${token.text}"`);
      const inner = this.ternary();
      this.expect(")");
      return inner;
    }
    if (this.take("(") !== null) return this.call(token.text);
    if (token.text === "null") return constant(null);
    if (token.text === "true" || token.text === "false") return constant(token.text === "true");
    return (scope) => scope.lookup(token.text) ?? null;
  }

  private call(name: string): Expression {
    const args: Expression[] = [];
    if (this.take(")") === null) {
      do args.push(this.ternary());
      while (this.take(",") !== null);
      this.expect(")");
    }
    if (name === "exists" || name === "score") {
      if (args.length !== 1) this.fail(`${name} takes one text`);
      return (scope) => scope[name](String(args[0]!(scope)));
    }
    const fn = FUNCTIONS.get(name);
    if (!fn) return this.fail(`there is no function "${name}"`);
    if (args.length < fn.min || args.length > fn.max) this.fail(`${name} takes ${fn.min} to ${fn.max} values`);
    return (scope) => fn.apply(args.map((arg) => arg(scope)));
  }
}

const constant =
  (value: Value): Expression =>
  () =>
    value;

/** A null or NaN is never true. */
export function truthy(value: Value): boolean {
  return value !== null && value !== false && value !== 0 && value !== "" && !Number.isNaN(value);
}

/** Arithmetic and order with a null, or with a text where a number is needed, give null. `==` and `!=` compare as they are. */
function apply(operator: string, a: Value, b: Value): Value {
  if (operator === "==") return a === b;
  if (operator === "!=") return a !== b;
  if (a === null || b === null) return null;
  if (typeof a === "string" || typeof b === "string") {
    if (operator === "+") return String(a) + String(b);
    if (typeof a !== typeof b) return null;
    return compare(operator, a as string, b as string);
  }
  const [x, y] = [Number(a), Number(b)];
  if (operator === "+") return finite(x + y);
  if (operator === "-") return finite(x - y);
  if (operator === "*") return finite(x * y);
  if (operator === "/") return finite(x / y);
  if (operator === "%") return finite(x % y);
  return compare(operator, x, y);
}

function compare<T extends string | number>(operator: string, a: T, b: T): Value {
  if (operator === "<") return a < b;
  if (operator === "<=") return a <= b;
  if (operator === ">") return a > b;
  if (operator === ">=") return a >= b;
  return null;
}

/** A number that is not finite is unknown. */
function finite(value: number): Value {
  return Number.isFinite(value) ? value : null;
}

const numeric =
  (fn: (...values: number[]) => number) =>
  (values: Value[]): Value =>
    values.some((value) => value === null || typeof value === "string") ? null : finite(fn(...values.map(Number)));

const FUNCTIONS: ReadonlyMap<string, { min: number; max: number; apply: (values: Value[]) => Value }> = new Map([
  ["min", { min: 1, max: 100, apply: numeric(Math.min) }],
  ["max", { min: 1, max: 100, apply: numeric(Math.max) }],
  ["abs", { min: 1, max: 1, apply: numeric(Math.abs) }],
  ["sqrt", { min: 1, max: 1, apply: numeric(Math.sqrt) }],
  ["exp", { min: 1, max: 1, apply: numeric(Math.exp) }],
  ["log", { min: 1, max: 1, apply: numeric(Math.log) }],
  ["clip", { min: 3, max: 3, apply: numeric((x, low, high) => Math.min(Math.max(x!, low!), high!)) }],
  ["coalesce", { min: 1, max: 100, apply: (values) => values.find((value) => value !== null) ?? null }],
  ["isnull", { min: 1, max: 1, apply: (values) => values[0] === null }],
]);
