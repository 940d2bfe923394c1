/** Data as nobody promised it, for tests that nothing from outside ends the process: JSON whose members are replaced, cut, doubled or broken. */
import fc from "fast-check";

/** Spliced in as text, so that numbers beyond a double, lone surrogates and nesting without end come through as they are. */
const RAW: readonly string[] = [
  "null",
  "true",
  '""',
  "0",
  "-1",
  "0.5",
  "1e308",
  "1e400",
  "-0",
  "9007199254740993",
  "1790000000000",
  "1790000000000000000",
  "2147483648",
  '"1790000000"',
  '"NaN"',
  '"Infinity"',
  '"\\ud800"',
  '"\\u0000"',
  '"__proto__"',
  '"constructor"',
  "[]",
  "{}",
  "[null]",
  "[[]]",
  '{"__proto__":{"x":1}}',
  '{"toString":1,"valueOf":2,"length":-1}',
  '{"type":"function"}',
  `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
  `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
  JSON.stringify("[".repeat(50_000)),
  JSON.stringify('{"a":'.repeat(20_000)),
  JSON.stringify("x".repeat(100_000)),
  `[${"1,".repeat(200_000)}1]`,
  `[${'{"logprob":-1},'.repeat(150_000)}{"logprob":-1}]`,
  `{${Array.from({ length: 2000 }, (_, index) => `"k${index}":${index}`).join(",")}}`,
  '"2026-13-45T99:99:99Z"',
  '"%E0%A4%A"',
  '"chatcmpl-\\r\\nx: y"',
];

type Path = (string | number)[];

/** Where the values of a JSON value stand, the value itself included. */
function pathsOf(value: unknown, at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...at, key]))];
}

/** `value` as JSON text with raw text at some paths; an undefined text leaves the member out. */
function textWith(value: unknown, changes: ReadonlyMap<string, string | undefined>, at: Path = []): string {
  const key = JSON.stringify(at.map(String));
  if (changes.has(key)) return changes.get(key) ?? "null";
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item, index) => textWith(item, changes, [...at, index])).join(",")}]`;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const place = [...at, name];
    const id = JSON.stringify(place.map(String));
    if (changes.has(id) && changes.get(id) === undefined) return [];
    return [`${JSON.stringify(name)}:${textWith(member, changes, place)}`];
  });
  return `{${members.join(",")}}`;
}

/** Bytes of a JSON text that was `template` once: up to three members changed, and now and then broken as a whole. */
export function strangeJson(template: unknown): fc.Arbitrary<Buffer> {
  const paths = pathsOf(template).map((path) => JSON.stringify(path.map(String)));
  const change = fc.tuple(fc.constantFrom(...paths), fc.option(fc.constantFrom(...RAW), { nil: undefined, freq: 8 }));
  const plain = fc
    .array(change, { minLength: 1, maxLength: 3 })
    .map((changes) => Buffer.from(textWith(template, new Map(changes)), "utf8"));
  const broken = fc.tuple(plain, fc.nat(), fc.nat(255)).map(([bytes, where, byte]) => {
    const copy = Buffer.from(bytes);
    const at = where % copy.length;
    copy[at] = byte;
    return byte % 3 === 0 ? copy.subarray(0, at) : copy;
  });
  const junk = fc.constantFrom(
    ...["", " ", "[", '"', "\ufeff{}", "null", "[]", "\u0000", "<html>", '{"a":1}{"b":2}', RAW.at(27)!].map((text) =>
      Buffer.from(text, "utf8"),
    ),
    Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  );
  return fc.oneof({ weight: 12, arbitrary: plain }, { weight: 2, arbitrary: broken }, { weight: 1, arbitrary: junk });
}
