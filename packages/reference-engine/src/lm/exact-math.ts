/**
 * exp, log, sin and cos from additions and multiplications alone. `Math.exp` and its kin may differ in the last bit from one Node version to the next;
 * these do not, so that log probabilities and training runs repeat bit by bit everywhere.
 */

const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const LEAST_EXPONENT = -1074;
const POWERS_OF_TWO = powersOfTwo();

function powersOfTwo(): Float64Array {
  const powers = new Float64Array(2098);
  for (let i = 0, power = 2 ** LEAST_EXPONENT; i < powers.length; i++, power *= 2) powers[i] = power;
  return powers;
}

/** e^x, relative error below 1e-13; 0 below −745, Infinity above 709. */
export function exp(x: number): number {
  if (x < -745) return 0;
  if (x > 709) return Number.POSITIVE_INFINITY;
  const n = Math.floor(x * Math.LOG2E + 0.5);
  const r = x - n * LN2_HIGH - n * LN2_LOW;
  let p = 1 / 39916800;
  p = p * r + 1 / 3628800;
  p = p * r + 1 / 362880;
  p = p * r + 1 / 40320;
  p = p * r + 1 / 5040;
  p = p * r + 1 / 720;
  p = p * r + 1 / 120;
  p = p * r + 1 / 24;
  p = p * r + 1 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  return p * POWERS_OF_TWO[n - LEAST_EXPONENT]!;
}

const bits = new DataView(new ArrayBuffer(8));

/** Natural logarithm of a positive normal number, relative error below 1e-14; −Infinity for 0, NaN for what is negative. */
export function log(x: number): number {
  if (!(x > 0)) return x === 0 ? Number.NEGATIVE_INFINITY : Number.NaN;
  if (x === Number.POSITIVE_INFINITY) return x;
  bits.setFloat64(0, x);
  const high = bits.getUint32(0);
  let exponent = (high >>> 20) - 1023;
  bits.setUint32(0, (high & 0xfffff) | 0x3ff00000);
  let mantissa = bits.getFloat64(0);
  if (mantissa > Math.SQRT2) {
    mantissa /= 2;
    exponent += 1;
  }
  const s = (mantissa - 1) / (mantissa + 1);
  const square = s * s;
  let series = 0;
  for (let odd = 23; odd >= 1; odd -= 2) series = series * square + 1 / odd;
  return exponent * LN2_HIGH + (2 * s * series + exponent * LN2_LOW);
}

const HALF_PI_HIGH = 1.5707963267341256;
const HALF_PI_LOW = 6.077100506506192e-11;

/** Cosine and sine of an angle in radians, absolute error below 1e-12 for |angle| up to 1e5. */
export function cosSin(angle: number): [cos: number, sin: number] {
  const quarter = Math.floor(angle / (HALF_PI_HIGH + HALF_PI_LOW) + 0.5);
  const r = angle - quarter * HALF_PI_HIGH - quarter * HALF_PI_LOW;
  const square = r * r;
  let cos = 0;
  let sin = 0;
  for (let k = 16; k >= 2; k -= 2) {
    cos = (-square / (k * (k - 1))) * (1 + cos);
    sin = (-square / ((k + 1) * k)) * (1 + sin);
  }
  cos += 1;
  sin = r * (1 + sin);
  switch (((quarter % 4) + 4) % 4) {
    case 0:
      return [cos, sin];
    case 1:
      return [-sin, cos];
    case 2:
      return [-cos, -sin];
    default:
      return [sin, -cos];
  }
}
