/**
 * Runs a parsed chat template and gives its output in chunks: one per iteration of a loop at the top level, one per stretch between.
 * Iterations over messages that were seen before under the same circumstances are not run again.
 */
import {
  type AnyRuntimeValue,
  ArrayValue,
  type BinaryExpression,
  BooleanValue,
  BreakControl,
  ContinueControl,
  convertToRuntimeValues,
  type Environment,
  type Expression,
  type FilterExpression,
  type For,
  type FunctionValue,
  type Identifier,
  type If,
  IntegerValue,
  Interpreter,
  type Macro,
  type MemberExpression,
  NamespaceValue,
  ObjectValue,
  type Program,
  type SetStatement,
  type Statement,
  UndefinedValue,
} from "@huggingface/jinja";
import { IterationMemo, type LoopPlace, RecordingScope, sameValue } from "./iteration-memo.js";

const MUTATORS = new Set([
  "append",
  "extend",
  "insert",
  "pop",
  "remove",
  "clear",
  "update",
  "setdefault",
  "reverse",
  "sort",
]);

/** True when the template calls a method that changes a list or mapping in place: then an iteration can have effects that no record shows. */
function mutatesValues(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(mutatesValues);
  if (node instanceof Map) return [...node].some(([key, value]) => mutatesValues(key) || mutatesValues(value));
  if (typeof node !== "object" || node === null) return false;
  const { type, callee } = node as { type?: string; callee?: { type: string; property?: { value?: unknown } } };
  if (type === "CallExpression" && callee?.type === "MemberExpression" && MUTATORS.has(String(callee.property?.value)))
    return true;
  return Object.values(node).some(mutatesValues);
}

/** Names of all variables that the template sets anywhere. */
function assignedNames(node: unknown, names = new Set<string>()): Set<string> {
  if (Array.isArray(node)) for (const item of node) assignedNames(item, names);
  else if (node instanceof Map) for (const item of node.values()) assignedNames(item, names);
  else if (typeof node === "object" && node !== null) {
    const { type, assignee } = node as { type?: string; assignee?: Identifier };
    if (type === "Set" && assignee?.type === "Identifier") names.add(assignee.value);
    for (const item of Object.values(node)) assignedNames(item, names);
  }
  return names;
}

const NOTHING = convertToRuntimeValues(null) as ReturnType<Interpreter["evaluateSet"]>;

/** A loop over one variable, without a filter: nearly all message loops. Others run as part of their stretch. */
function isPlainLoop(node: For): boolean {
  return node.loopvar.type === "Identifier" && node.iterable.type !== "SelectExpression";
}

/** The `loop` object of an iteration; its members are made when they are read. */
class LoopVariables extends Map<string, AnyRuntimeValue> implements LoopPlace {
  constructor(
    readonly items: readonly AnyRuntimeValue[],
    public i: number,
  ) {
    super();
  }

  /** True when member `name` has this value; compares without making the member. */
  holds(name: string, value: AnyRuntimeValue): boolean {
    const { items, i } = this;
    switch (name) {
      case "index":
        return value.value === i + 1;
      case "index0":
        return value.value === i;
      case "first":
        return value.value === (i === 0);
      case "last":
        return value.value === (i === items.length - 1);
      default:
        return sameValue(this.get(name) ?? new UndefinedValue(), value);
    }
  }

  override get(name: string): AnyRuntimeValue | undefined {
    const { items, i } = this;
    switch (name) {
      case "index":
        return new IntegerValue(i + 1);
      case "index0":
        return new IntegerValue(i);
      case "revindex":
        return new IntegerValue(items.length - i);
      case "revindex0":
        return new IntegerValue(items.length - i - 1);
      case "first":
        return new BooleanValue(i === 0);
      case "last":
        return new BooleanValue(i === items.length - 1);
      case "length":
        return new IntegerValue(items.length);
      case "previtem":
        return items[i - 1] ?? new UndefinedValue();
      case "nextitem":
        return items[i + 1] ?? new UndefinedValue();
      default:
        return undefined;
    }
  }
}

/** True when the variable belongs to the iteration itself, so that reading it is no dependency. */
function isLocal(name: string, environment: Environment, scope: RecordingScope): boolean {
  for (let at: Environment | undefined = environment; at !== undefined; at = at.parent) {
    if (at.variables.has(name)) return true;
    if (at === scope) return false;
  }
  return false;
}

function quietLookup(name: string, environment: Environment, scope: RecordingScope): AnyRuntimeValue {
  scope.quiet = true;
  const value = environment.lookupVariable(name);
  scope.quiet = false;
  return value;
}

export class ChunkInterpreter extends Interpreter {
  readonly #program: Program;
  readonly #mayReplay: boolean;
  /** Every name that the template sets anywhere inside a loop, and then some. */
  readonly #assigned: ReadonlySet<string>;
  readonly #memos = new WeakMap<For, IterationMemo>();
  readonly #macros = new WeakMap<Macro, FunctionValue>();
  #recording: RecordingScope | undefined;

  constructor(program: Program) {
    super();
    this.#program = program;
    this.#mayReplay = !mutatesValues(program.body);
    this.#assigned = assignedNames(program.body);
  }

  /** The output for the variables in `environment`, in chunks. @throws whatever the template raises. */
  chunks(environment: Environment): string[] {
    const out: string[] = [];
    this.#recording = undefined;
    this.#runTop(this.#program.body, environment, out);
    return out;
  }

  #runTop(statements: Statement[], environment: Environment, out: string[]): void {
    for (const statement of statements) {
      if (statement.type === "If") {
        const branch = statement as If;
        const holds = this.evaluate(branch.test, environment).__bool__().value;
        this.#runTop(holds ? branch.body : branch.alternate, environment, out);
      } else if (statement.type === "For" && isPlainLoop(statement as For)) {
        this.#runLoop(statement as For, environment, out);
      } else {
        const text = this.evaluateBlock([statement], environment).value;
        if (text !== "") out.push(text);
      }
    }
  }

  /** A loop at the top level, iteration by iteration. Equal to the interpreter's own loop, but for the reuse. */
  #runLoop(node: For, environment: Environment, out: string[]): void {
    const iterable = this.evaluate(node.iterable, environment);
    const items = iterable instanceof ObjectValue ? iterable.keys().value : iterable.value;
    if (!(iterable instanceof ArrayValue || iterable instanceof ObjectValue)) {
      throw new Error(`Expected iterable or object type in for loop: got ${iterable.type}`);
    }
    const memo = this.#memos.get(node) ?? new IterationMemo();
    this.#memos.set(node, memo);
    const list = items as AnyRuntimeValue[];
    const checked = new LoopVariables(list, 0);
    memo.outsideChanged();
    for (let i = 0; i < list.length; i++) {
      checked.i = i;
      const replayed =
        this.#mayReplay && list[i] instanceof ObjectValue
          ? memo.replay(list[i] as ObjectValue, environment, checked)
          : undefined;
      if (replayed !== undefined) {
        if (replayed !== "") out.push(replayed);
        continue;
      }
      const { text, ended } = this.#runIteration(node, environment, list[i]!, new LoopVariables(list, i), memo);
      memo.outsideChanged();
      if (text !== "") out.push(text);
      if (ended) return;
    }
    if (list.length === 0) this.#runTop(node.defaultBlock, environment, out);
  }

  #runIteration(
    node: For,
    outer: Environment,
    item: AnyRuntimeValue,
    loop: Map<string, AnyRuntimeValue>,
    memo: IterationMemo,
  ) {
    const scope = new RecordingScope(outer, (expression) => this.evaluate(expression, scope));
    scope.setVariable("loop", new ObjectValue(loop));
    scope.setVariable((node.loopvar as Identifier).value, item);
    this.#recording = scope;
    try {
      const text = this.evaluateBlock(node.body, scope).value;
      if (this.#mayReplay && item instanceof ObjectValue) memo.record(item, scope, text);
      return { text, ended: false };
    } catch (signal) {
      if (signal instanceof ContinueControl) return { text: signal.text, ended: false };
      if (signal instanceof BreakControl) return { text: signal.text, ended: true };
      throw signal;
    } finally {
      this.#recording = undefined;
    }
  }

  protected override evaluateMacro(node: Macro, environment: Environment): ReturnType<Interpreter["evaluateMacro"]> {
    const known = this.#macros.get(node);
    if (known !== undefined) {
      environment.setVariable(node.name.value, known);
      return NOTHING;
    }
    const result = super.evaluateMacro(node, environment);
    this.#macros.set(node, environment.lookupVariable(node.name.value) as FunctionValue);
    return result;
  }

  protected override evaluateMemberExpression(expr: MemberExpression, environment: Environment): AnyRuntimeValue {
    const scope = this.#recording;
    if (scope === undefined || expr.object.type !== "Identifier")
      return super.evaluateMemberExpression(expr, environment);
    const name = (expr.object as Identifier).value;
    const object = quietLookup(name, environment, scope);
    if (object instanceof NamespaceValue) {
      const attribute = this.#memberName(expr, environment);
      const value = object.value.get(attribute) ?? new UndefinedValue();
      if (!isLocal(name, environment, scope)) scope.noteAttribute(name, attribute, value);
      return value;
    }
    if (object === scope.variables.get("loop")) {
      const attribute = this.#memberName(expr, environment);
      const value = (object as ObjectValue).value.get(attribute) ?? new UndefinedValue();
      scope.note({ kind: "loop", attribute, value });
      return value;
    }
    if (
      object instanceof ArrayValue &&
      expr.computed &&
      expr.property.type !== "SliceExpression" &&
      !isLocal(name, environment, scope)
    ) {
      const index = this.evaluate(expr.property, environment);
      if (index instanceof IntegerValue) {
        const value = object.value.at(index.value) ?? new UndefinedValue();
        scope.note({ kind: "item", name, index: index.value, value });
        return value;
      }
    }
    return super.evaluateMemberExpression(expr, environment);
  }

  protected override evaluateSet(node: SetStatement, environment: Environment): ReturnType<Interpreter["evaluateSet"]> {
    const scope = this.#recording;
    const member = node.assignee as MemberExpression;
    if (
      scope === environment &&
      node.assignee.type === "Identifier" &&
      node.value &&
      this.#canWait(node, environment)
    ) {
      scope.setLater((node.assignee as Identifier).value, node.value);
      return NOTHING;
    }
    if (scope === undefined || member.type !== "MemberExpression" || member.object.type !== "Identifier") {
      if (scope !== undefined && member.type === "MemberExpression") scope.replayable = false;
      return super.evaluateSet(node, environment);
    }
    const value = node.value ? this.evaluate(node.value, environment) : this.evaluateBlock(node.body, environment);
    const name = (member.object as Identifier).value;
    const namespace = quietLookup(name, environment, scope);
    if (!(namespace instanceof NamespaceValue)) throw new Error("cannot assign attribute on non-namespace object");
    const attribute = (member.property as Identifier).value;
    namespace.value.set(attribute, value);
    if (!isLocal(name, environment, scope)) scope.writes.push({ name, attribute, value });
    return NOTHING;
  }

  /** True for arithmetic on places and lengths: evaluated when it is read, it is no dependency of iterations that do not read it. */
  #canWait(node: SetStatement, scope: Environment): boolean {
    const fixed = (name: string): boolean => !scope.variables.has(name) && !this.#assigned.has(name);
    const waits = (expression: Expression): boolean => {
      switch (expression.type) {
        case "IntegerLiteral":
          return true;
        case "BinaryExpression": {
          const { left, right, operator } = expression as BinaryExpression;
          return ["+", "-", "*"].includes(operator.value) && waits(left) && waits(right);
        }
        case "MemberExpression": {
          const { object, computed } = expression as MemberExpression;
          return !computed && object.type === "Identifier" && (object as Identifier).value === "loop";
        }
        case "FilterExpression": {
          const { operand, filter } = expression as FilterExpression;
          const isLength = filter.type === "Identifier" && (filter as Identifier).value === "length";
          return isLength && operand.type === "Identifier" && fixed((operand as Identifier).value);
        }
        default:
          return false;
      }
    };
    return waits(node.value!);
  }

  #memberName(expr: MemberExpression, environment: Environment): string {
    return expr.computed
      ? String(this.evaluate(expr.property, environment).value)
      : (expr.property as Identifier).value;
  }
}
