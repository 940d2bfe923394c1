/**
 * What one iteration of a template's message loop read from outside, and what it printed and wrote. When everything that it read is the same again,
 * its text is reused: a long history then costs some comparisons per message instead of a render.
 */
import {
  type AnyRuntimeValue,
  Environment,
  type Expression,
  NamespaceValue,
  type ObjectValue,
  UndefinedValue,
} from "@huggingface/jinja";

/** A read from outside the iteration, with what was found. */
type Read =
  | { kind: "variable"; name: string; value: AnyRuntimeValue }
  | { kind: "attribute"; name: string; attribute: string; value: AnyRuntimeValue }
  | { kind: "item"; name: string; index: number; value: AnyRuntimeValue }
  | { kind: "loop"; attribute: string; value: AnyRuntimeValue };

interface Write {
  name: string;
  attribute: string;
  value: AnyRuntimeValue;
}

interface Recorded {
  reads: Read[];
  writes: Write[];
  text: string;
}

function sameRead(a: Read, b: Read): boolean {
  switch (a.kind) {
    case "variable":
      return b.kind === "variable" && a.name === b.name;
    case "attribute":
      return b.kind === "attribute" && a.name === b.name && a.attribute === b.attribute;
    case "item":
      return b.kind === "item" && a.name === b.name && a.index === b.index;
    case "loop":
      return b.kind === "loop" && a.attribute === b.attribute;
  }
}

const PRIMITIVES = new Set([
  "StringValue",
  "IntegerValue",
  "FloatValue",
  "BooleanValue",
  "NullValue",
  "UndefinedValue",
]);

/** Same object, or equal primitives. Messages and tools are interned, so that equal ones are the same object. */
export function sameValue(a: AnyRuntimeValue, b: AnyRuntimeValue): boolean {
  return a === b || (Object.is(a.value, b.value) && a.type === b.type && PRIMITIVES.has(a.type));
}

/** The scope of an iteration that is being recorded. */
export class RecordingScope extends Environment {
  readonly reads: Read[] = [];
  readonly writes: Write[] = [];
  /** False once something happened that cannot be replayed. */
  replayable = true;
  /** Set while a member of the variable is being looked up: then the member is what counts. */
  quiet = false;
  readonly #outer: Environment;
  readonly #later = new Map<string, Expression>();
  readonly #evaluate: (expression: Expression) => AnyRuntimeValue;

  constructor(outer: Environment, evaluate: (expression: Expression) => AnyRuntimeValue) {
    super(outer);
    this.#outer = outer;
    this.#evaluate = evaluate;
  }

  /** Sets a variable to an expression that is evaluated when the variable is read. */
  setLater(name: string, expression: Expression): void {
    this.variables.delete(name);
    this.#later.set(name, expression);
  }

  override setVariable(name: string, value: AnyRuntimeValue): AnyRuntimeValue {
    this.#later.delete(name);
    return super.setVariable(name, value);
  }

  override lookupVariable(name: string): AnyRuntimeValue {
    const waiting = this.#later.get(name);
    if (waiting !== undefined) this.setVariable(name, this.#evaluate(waiting));
    const own = this.variables.get(name);
    if (own !== undefined) {
      if (name === "loop" && !this.quiet) this.replayable = false;
      return own;
    }
    const value = this.#outer.lookupVariable(name);
    if (this.quiet) return value;
    if (value instanceof NamespaceValue) this.replayable = false;
    this.note({ kind: "variable", name, value });
    return value;
  }

  /** Remembers a read; the same one only once. */
  note(read: Read): void {
    if (!this.reads.some((known) => sameRead(known, read))) this.reads.push(read);
  }

  noteAttribute(name: string, attribute: string, value: AnyRuntimeValue): void {
    const written = this.writes.some((write) => write.name === name && write.attribute === attribute);
    if (!written) this.note({ kind: "attribute", name, attribute, value });
  }
}

const UNDEFINED = new UndefinedValue();

/** Where an iteration stands: answers what its `loop` object would say. */
export interface LoopPlace {
  holds(attribute: string, value: AnyRuntimeValue): boolean;
}

const RECORDINGS_PER_ITEM = 4;

/** Recordings of one loop, by the item that was iterated over. */
export class IterationMemo {
  readonly #byItem = new WeakMap<ObjectValue, Recorded[]>();

  /** The text of an earlier iteration that would come out the same now; its namespace writes are done. Undefined when there is none. */
  replay(item: ObjectValue, outer: Environment, loop: LoopPlace): string | undefined {
    for (const recorded of this.#byItem.get(item) ?? []) {
      if (!recorded.reads.every((read) => stillTrue(read, outer, loop))) continue;
      for (const write of recorded.writes) {
        (outer.lookupVariable(write.name) as NamespaceValue).value.set(write.attribute, write.value);
      }
      return recorded.text;
    }
    return undefined;
  }

  record(item: ObjectValue, scope: RecordingScope, text: string): void {
    if (!scope.replayable) return;
    const known = this.#byItem.get(item) ?? [];
    this.#byItem.set(
      item,
      [{ reads: scope.reads, writes: scope.writes, text }, ...known].slice(0, RECORDINGS_PER_ITEM),
    );
  }
}

function stillTrue(read: Read, outer: Environment, loop: LoopPlace): boolean {
  switch (read.kind) {
    case "loop":
      return loop.holds(read.attribute, read.value);
    case "variable":
      return sameValue(outer.lookupVariable(read.name), read.value);
    case "attribute": {
      const namespace = outer.lookupVariable(read.name);
      return (
        namespace instanceof NamespaceValue && sameValue(namespace.value.get(read.attribute) ?? UNDEFINED, read.value)
      );
    }
    case "item": {
      const array = outer.lookupVariable(read.name).value as AnyRuntimeValue[];
      return sameValue(array.at(read.index) ?? UNDEFINED, read.value);
    }
  }
}
