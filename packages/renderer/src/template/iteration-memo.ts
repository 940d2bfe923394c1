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

/** A read of a variable or of a namespace's attribute, with what was found. */
type OutsideRead =
  | { kind: "variable"; name: string; value: AnyRuntimeValue }
  | { kind: "attribute"; name: string; attribute: string; value: AnyRuntimeValue };

/** A read that depends on where in the loop the iteration stands: of the `loop` object, or of a list at an index. */
type PlaceRead =
  | { kind: "item"; name: string; index: number; value: AnyRuntimeValue }
  | { kind: "loop"; attribute: string; value: AnyRuntimeValue };

type Read = OutsideRead | PlaceRead;

interface Write {
  name: string;
  attribute: string;
  value: AnyRuntimeValue;
}

/** Reads that many iterations share, because they do not depend on the place in the loop: asked once, then known until something is written. */
interface Circumstances {
  reads: readonly OutsideRead[];
  /** Moment of the last answer. */
  moment: number;
  hold: boolean;
}

interface Recorded {
  circumstances: Circumstances;
  place: readonly PlaceRead[];
  writes: readonly Write[];
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
const CIRCUMSTANCES_MAX = 16;

/** Recordings of one loop, by the item that was iterated over. */
export class IterationMemo {
  readonly #byItem = new WeakMap<ObjectValue, Recorded[]>();
  #circumstances: Circumstances[] = [];
  #moment = 0;

  /** To be called when something outside may have changed: at the loop's start and after each iteration that was really run. */
  outsideChanged(): void {
    this.#moment++;
  }

  /** The text of an earlier iteration that would come out the same now; its namespace writes are done. Undefined when there is none. */
  replay(item: ObjectValue, outer: Environment, loop: LoopPlace): string | undefined {
    const recordings = this.#byItem.get(item);
    if (recordings === undefined) return undefined;
    for (const recorded of recordings) {
      if (!this.#stillHold(recorded.circumstances, outer)) continue;
      if (!standsThere(recorded.place, outer, loop)) continue;
      for (const write of recorded.writes) this.#write(write, outer);
      return recorded.text;
    }
    return undefined;
  }

  record(item: ObjectValue, scope: RecordingScope, text: string): void {
    if (!scope.replayable) return;
    const place = scope.reads.filter((read) => read.kind === "item" || read.kind === "loop");
    const circumstances = this.#shared(
      scope.reads.filter((read) => read.kind === "variable" || read.kind === "attribute"),
    );
    const known = this.#byItem.get(item) ?? [];
    this.#byItem.set(
      item,
      [{ circumstances, place, writes: scope.writes, text }, ...known].slice(0, RECORDINGS_PER_ITEM),
    );
  }

  #stillHold(circumstances: Circumstances, outer: Environment): boolean {
    if (circumstances.moment !== this.#moment) {
      circumstances.hold = circumstances.reads.every((read) => stillTrue(read, outer));
      circumstances.moment = this.#moment;
    }
    return circumstances.hold;
  }

  #write({ name, attribute, value }: Write, outer: Environment): void {
    const namespace = (outer.lookupVariable(name) as NamespaceValue).value;
    if (!sameValue(namespace.get(attribute) ?? UNDEFINED, value)) this.#moment++;
    namespace.set(attribute, value);
  }

  /** Equal circumstances of another iteration, or new ones. */
  #shared(reads: readonly OutsideRead[]): Circumstances {
    const known = this.#circumstances.find(
      (other) =>
        other.reads.length === reads.length &&
        other.reads.every((read, i) => sameRead(read, reads[i]!) && sameValue(read.value, reads[i]!.value)),
    );
    const circumstances = known ?? { reads, moment: -1, hold: false };
    if (known === undefined) this.#circumstances = [circumstances, ...this.#circumstances].slice(0, CIRCUMSTANCES_MAX);
    return circumstances;
  }
}

function stillTrue(read: OutsideRead, outer: Environment): boolean {
  switch (read.kind) {
    case "variable":
      return sameValue(outer.lookupVariable(read.name), read.value);
    case "attribute": {
      const namespace = outer.lookupVariable(read.name);
      return (
        namespace instanceof NamespaceValue && sameValue(namespace.value.get(read.attribute) ?? UNDEFINED, read.value)
      );
    }
  }
}

function standsThere(place: readonly PlaceRead[], outer: Environment, loop: LoopPlace): boolean {
  for (const read of place) {
    if (read.kind === "loop") {
      if (!loop.holds(read.attribute, read.value)) return false;
    } else {
      const items = outer.lookupVariable(read.name).value as AnyRuntimeValue[];
      if (!sameValue(items.at(read.index) ?? UNDEFINED, read.value)) return false;
    }
  }
  return true;
}
