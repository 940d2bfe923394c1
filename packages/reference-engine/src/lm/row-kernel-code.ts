import { type Code, defineFunction, type FunctionCode, f32, f32x4, i32, type Locals } from "./wasm-code.js";

/**
 * Writes the WebAssembly functions that training spends its time in besides matrix products: softmax and SiLU over rows, in SIMD f32, forwards and back.
 * Counts are multiples of 4 floats, pointers in bytes. The order of every sum is fixed, so results repeat bit by bit.
 * The forward pass of the engine does not use them: it computes in f64.
 */

type Declaration = readonly (readonly [string, "i32" | "f32" | "v128"])[];

const LOG2_E = Math.LOG2E;
const LN2_HIGH = 0.693359375;
const LN2_LOW = -2.1219444e-4;
/** Cephes' polynomial for e^r on |r| ≤ ln 2 / 2. */
const EXP_TERMS = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1];
const EXP_LOCALS: Declaration = [
  ["x", "v128"],
  ["n", "v128"],
  ["r", "v128"],
];

/** Leaves e^value on the stack; arguments are clamped to ±87. */
function expVector({ get, set }: Locals, value: Code): number[] {
  const clamped = f32x4.min(f32x4.max(value, f32x4.constant(-87)), f32x4.constant(87));
  const part = (factor: number) => f32x4.multiply(get("n"), f32x4.constant(factor));
  const polynomial = EXP_TERMS.slice(1).reduce<Code>(
    (sum, term) => f32x4.add(f32x4.multiply(sum, get("r")), f32x4.constant(term)),
    f32x4.constant(EXP_TERMS[0]!),
  );
  const tail = f32x4.multiply(f32x4.multiply(polynomial, get("r")), get("r"));
  const mantissa = f32x4.add(f32x4.add(tail, get("r")), f32x4.constant(1));
  return [
    ...set("x", clamped),
    ...set("n", f32x4.nearest(f32x4.multiply(get("x"), f32x4.constant(LOG2_E)))),
    ...set("r", f32x4.subtract(f32x4.subtract(get("x"), part(LN2_HIGH)), part(LN2_LOW))),
    ...f32x4.multiply(mantissa, f32x4.powerOfTwo(get("n"))),
  ];
}

/** Four lanes to one number: ((0 ⊕ 1) ⊕ (2 ⊕ 3)). */
function reduceLanes(vector: Code, join: (a: Code, b: Code) => Code): Code {
  const lane = (index: number) => f32x4.lane(vector, index);
  return join(join(lane(0), lane(1)), join(lane(2), lane(3)));
}

/** Runs `body` for each group of four floats, advancing the named pointers. */
function eachVector({ get, set, advance, whileAtLeast }: Locals, pointers: readonly string[], body: Code): number[] {
  return [
    ...set("left", get("count")),
    ...whileAtLeast("left", 4, [
      ...body,
      ...pointers.flatMap((pointer) => advance(pointer, i32.constant(16))),
      ...set("left", i32.subtract(get("left"), i32.constant(4))),
    ]),
  ];
}

/** softmax(row, count, scale, factor): row ← factor · softmax(scale · row). */
function softmaxCode(): FunctionCode {
  const parameters: Declaration = [
    ["row", "i32"],
    ["count", "i32"],
    ["scale", "f32"],
    ["factor", "f32"],
  ];
  const locals: Declaration = [["left", "i32"], ["at", "i32"], ["highest", "v128"], ["sum", "v128"], ...EXP_LOCALS];
  return defineFunction("softmax", parameters, locals, (scope) => {
    const { get, set } = scope;
    const cell = f32x4.load(get("at"));
    const shifted = f32x4.multiply(f32x4.subtract(cell, get("highest")), f32x4.splat(get("scale")));
    const restart = set("at", get("row"));
    return [
      ...restart,
      ...set("highest", cell),
      ...eachVector(scope, ["at"], set("highest", f32x4.max(get("highest"), cell))),
      ...set("highest", f32x4.splat(reduceLanes(get("highest"), f32.max))),
      ...restart,
      ...set("sum", f32x4.zero),
      ...eachVector(
        scope,
        ["at"],
        [...f32x4.store(get("at"), expVector(scope, shifted)), ...set("sum", f32x4.add(get("sum"), cell))],
      ),
      ...set("sum", f32x4.splat(f32.divide(get("factor"), reduceLanes(get("sum"), f32.add)))),
      ...restart,
      ...eachVector(scope, ["at"], f32x4.store(get("at"), f32x4.multiply(cell, get("sum")))),
    ];
  });
}

/** softmaxBack(p, d, count, scale): d ← scale · p · (d − Σ p·d). */
function softmaxBackCode(): FunctionCode {
  const parameters: Declaration = [
    ["p", "i32"],
    ["d", "i32"],
    ["count", "i32"],
    ["scale", "f32"],
  ];
  const locals: Declaration = [
    ["left", "i32"],
    ["atP", "i32"],
    ["atD", "i32"],
    ["sum", "v128"],
  ];
  return defineFunction("softmaxBack", parameters, locals, (scope) => {
    const { get, set } = scope;
    const p = f32x4.load(get("atP"));
    const d = f32x4.load(get("atD"));
    const restart = [...set("atP", get("p")), ...set("atD", get("d"))];
    const scaled = f32x4.multiply(p, f32x4.splat(get("scale")));
    return [
      ...restart,
      ...set("sum", f32x4.zero),
      ...eachVector(scope, ["atP", "atD"], set("sum", f32x4.add(get("sum"), f32x4.multiply(p, d)))),
      ...set("sum", f32x4.splat(reduceLanes(get("sum"), f32.add))),
      ...restart,
      ...eachVector(
        scope,
        ["atP", "atD"],
        f32x4.store(get("atD"), f32x4.multiply(scaled, f32x4.subtract(d, get("sum")))),
      ),
    ];
  });
}

/** silu(gate, up, logistic, product, count): logistic ← 1/(1 + e^−gate), product ← gate · logistic · up. */
function siluCode(): FunctionCode {
  const pointers = ["gate", "up", "logistic", "product"];
  const parameters: Declaration = [...pointers, "count"].map((name) => [name, "i32"] as const);
  const locals: Declaration = [["left", "i32"], ["open", "v128"], ...EXP_LOCALS];
  return defineFunction("silu", parameters, locals, (scope) => {
    const { get, set } = scope;
    const gate = f32x4.load(get("gate"));
    const one = f32x4.constant(1);
    const risen = f32x4.add(one, expVector(scope, f32x4.subtract(f32x4.zero, gate)));
    return eachVector(scope, pointers, [
      ...set("open", f32x4.divide(one, risen)),
      ...f32x4.store(get("logistic"), get("open")),
      ...f32x4.store(get("product"), f32x4.multiply(f32x4.multiply(gate, get("open")), f32x4.load(get("up")))),
    ]);
  });
}

/** siluBack(gate, up, logistic, dProduct, dGate, dUp, count): the gradients of `silu`. */
function siluBackCode(): FunctionCode {
  const pointers = ["gate", "up", "logistic", "dProduct", "dGate", "dUp"];
  const parameters: Declaration = [...pointers, "count"].map((name) => [name, "i32"] as const);
  const locals: Declaration = [
    ["left", "i32"],
    ["slope", "v128"],
  ];
  return defineFunction("siluBack", parameters, locals, (scope) => {
    const { get, set } = scope;
    const value = (name: string) => f32x4.load(get(name));
    const one = f32x4.constant(1);
    const bend = f32x4.add(one, f32x4.multiply(value("gate"), f32x4.subtract(one, value("logistic"))));
    return eachVector(scope, pointers, [
      ...set("slope", f32x4.multiply(value("dProduct"), value("logistic"))),
      ...f32x4.store(get("dUp"), f32x4.multiply(get("slope"), value("gate"))),
      ...f32x4.store(get("dGate"), f32x4.multiply(f32x4.multiply(get("slope"), value("up")), bend)),
    ]);
  });
}

/** softmax, softmaxBack, silu and siluBack, as typed in kernel.ts. */
export const rowKernelCode = (): FunctionCode[] => [softmaxCode(), softmaxBackCode(), siluCode(), siluBackCode()];
