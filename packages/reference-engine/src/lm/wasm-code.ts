/** A few words of WebAssembly's binary format: what the kernels need, nothing more. Code is a list of bytes; expressions nest as function calls. */

export type Code = readonly number[];

/** Value types: i32, f32 and the 16-byte vector of four f32. */
const TYPES = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;

export type ValueType = keyof typeof TYPES;

/** Unsigned LEB128. */
function leb(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    out.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return out;
}

const sequence = (...parts: readonly Code[]): number[] => parts.flat();
const simd = (opcode: number): number[] => [0xfd, ...leb(opcode)];
const binary = (opcode: Code) => (left: Code, right: Code) => sequence(left, right, opcode);
const unary = (opcode: Code) => (operand: Code) => sequence(operand, opcode);
const memory =
  (opcode: number) =>
  (address: Code, offset = 0) =>
    sequence(address, simd(opcode), [2], leb(offset));

/** 0 … 8191 */
const i32Constant = (value: number): number[] =>
  value < 64 ? [0x41, value] : [0x41, (value & 0x7f) | 0x80, value >> 7];
const f32Constant = (value: number): number[] => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)];

export const i32 = {
  constant: i32Constant,
  add: binary([0x6a]),
  subtract: binary([0x6b]),
  multiply: binary([0x6c]),
  shiftLeft: binary([0x74]),
};

export const f32 = { constant: f32Constant, add: binary([0x92]), divide: binary([0x95]), max: binary([0x97]) };

export const f32x4 = {
  load: memory(0x00),
  loadSplat: memory(0x09),
  store: (address: Code, value: Code, offset = 0) => sequence(address, value, simd(0x0b), [2], leb(offset)),
  zero: sequence(simd(0x0c), Array<number>(16).fill(0)),
  splat: unary(simd(0x13)),
  constant: (value: number) => sequence(f32Constant(value), simd(0x13)),
  lane: (vector: Code, lane: number) => sequence(vector, simd(0x1f), [lane]),
  nearest: unary(simd(0x6a)),
  add: binary(simd(0xe4)),
  subtract: binary(simd(0xe5)),
  multiply: binary(simd(0xe6)),
  divide: binary(simd(0xe7)),
  min: binary(simd(0xe8)),
  max: binary(simd(0xe9)),
  /** 2^n for whole n in −126 … 127, written straight into the exponent bits. */
  powerOfTwo: (n: Code) => {
    const biased = sequence(n, simd(0xf8), i32Constant(127), simd(0x11), simd(0xae));
    return sequence(biased, i32Constant(23), simd(0xab));
  },
};

/** `condition ? then : otherwise`, a vector; the condition is an i32. */
export const chooseVector = (condition: Code, then: Code, otherwise: Code): number[] =>
  sequence(condition, [0x04, TYPES.v128], then, [0x05], otherwise, [0x0b]);

/** Names → slots of one function. */
export interface Locals {
  get(name: string): number[];
  set(name: string, value: Code): number[];
  /** name += value, for i32. */
  advance(name: string, value: Code): number[];
  /** Repeats `body` while name ≥ least, signed. */
  whileAtLeast(name: string, least: number, body: Code): number[];
}

/** One exported function. */
export interface FunctionCode {
  readonly name: string;
  readonly parameters: readonly ValueType[];
  readonly result: ValueType | undefined;
  readonly body: number[];
}

type Declaration = readonly (readonly [name: string, type: ValueType])[];

/** Assembles one function; `write` gets its parameters and locals by name. */
export function defineFunction(
  name: string,
  parameters: Declaration,
  locals: Declaration,
  write: (locals: Locals) => Code,
  result?: ValueType,
): FunctionCode {
  const slots = new Map([...parameters, ...locals].map(([local], index) => [local, index]));
  const slot = (local: string) => leb(slots.get(local)!);
  const get = (local: string) => [0x20, ...slot(local)];
  const set = (local: string, value: Code) => sequence(value, [0x21], slot(local));
  const scope: Locals = {
    get,
    set,
    advance: (local, value) => set(local, i32.add(get(local), value)),
    whileAtLeast: (local, least, body) => {
      const leave = sequence(get(local), i32.constant(least), [0x48, 0x0d, 1]);
      return sequence([0x02, 0x40, 0x03, 0x40], leave, body, [0x0c, 0, 0x0b, 0x0b]);
    },
  };
  const declared = locals.flatMap(([, type]) => [1, TYPES[type]]);
  const body = sequence(leb(locals.length), declared, write(scope), [0x0b]);
  return { name, parameters: parameters.map(([, type]) => type), result, body };
}

/** A module that imports memory `e.m` and exports the functions. */
export function assembleModule(functions: readonly FunctionCode[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, body: Code) => sequence([id], leb(body.length), body);
  const text = (value: string) => sequence(leb(value.length), [...new TextEncoder().encode(value)]);
  const list = (entries: readonly Code[]) => sequence(leb(entries.length), ...entries);
  const signature = ({ parameters, result }: FunctionCode) =>
    sequence([0x60], list(parameters.map((type) => [TYPES[type]])), result ? [1, TYPES[result]] : [0]);
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(functions.map(signature))),
    ...section(2, list([sequence(text("e"), text("m"), [0x02, 0x00, 1])])),
    ...section(3, list(functions.map((_, index) => leb(index)))),
    ...section(7, list(functions.map(({ name }, index) => sequence(text(name), [0x00], leb(index))))),
    ...section(10, list(functions.map(({ body }) => sequence(leb(body.length), body)))),
  ]);
}
