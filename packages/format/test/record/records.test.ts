import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toLogprobs, toTokenIds } from "../../src/record/numbers.js";
import { unpackPayload } from "../../src/record/payload.js";
import { decodeRecord, encodeRecord, takeRecord } from "../../src/record/record-codec.js";
import { RECORD_FIELDS } from "../../src/record/record-fields.js";
import { RecordType, type TurnRecord } from "../../src/record/records.js";
import { ids, turn } from "../support/records.js";

function roundTrip(record: TurnRecord): TurnRecord {
  const named = decodeRecord(RecordType.turn, Buffer.from(encodeRecord("turn", record)), "test");
  return named!.record as TurnRecord;
}

function withLogprobs(values: number[], gaps: TurnRecord["logprob_gaps"] = []): TurnRecord {
  const logprobs = toLogprobs(values);
  return turn("a", ids(1, 3), ids(5, values.length), 0, { logprobs, logprob_gaps: gaps });
}

describe("numbers", () => {
  it("ids survive from 0 to 2^31 - 1; what is no int32 id is refused, never wrapped", () => {
    const edge = toTokenIds([0, 1, 65535, 65536, 2_147_483_647]);
    expect(roundTrip(turn("a", edge, edge)).prompt_suffix).toEqual(edge);
    for (const bad of [-1, 2_147_483_648, 4_294_967_295, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(() => toTokenIds([1, bad])).toThrowError(/\[1\] = .* is not an int32 token id/);
    }
    expect(() => encodeRecord("turn", turn("a", Int32Array.of(-5), ids(1, 1)))).toThrowError(
      /prompt_suffix\[0\] is not a token id/,
    );
  });

  it("log probabilities are float32 when every value survives, else float64, bit for bit", () => {
    const narrow = [-0.5, -0, 0, Math.fround(-0.1), -3.4028234663852886e38, -1.401298464324817e-45];
    expect(roundTrip(withLogprobs(narrow)).logprobs).toBeInstanceOf(Float32Array);
    expect(Array.from(roundTrip(withLogprobs(narrow)).logprobs!).every((value, i) => Object.is(value, narrow[i]))).toBe(
      true,
    );
    const wide = [...narrow, -0.1234567880654335];
    const read = roundTrip(withLogprobs(wide)).logprobs!;
    expect(read).toBeInstanceOf(Float64Array);
    expect(Array.from(read).every((value, i) => Object.is(value, wide[i]))).toBe(true);
  });

  it("any doubles come back as the same doubles", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 20 }),
        (values) => {
          const read = Array.from(roundTrip(withLogprobs(values)).logprobs!);
          return read.every((value, i) => Object.is(value, values[i]));
        },
      ),
    );
  });

  it("C4.27: a missing or not finite log probability is recorded as such and never becomes 0", () => {
    const gaps = [
      { index: 1, was: "null" },
      { index: 2, was: "-Infinity" },
    ];
    const read = roundTrip(withLogprobs([-1, Number.NaN, Number.NaN], gaps));
    expect(Array.from(read.logprobs!)).toEqual([-1, Number.NaN, Number.NaN]);
    expect(read.logprob_gaps).toEqual(gaps);
    expect(() => encodeRecord("turn", withLogprobs([-1, Number.NaN]))).toThrowError(
      /1 log probabilities are NaN but 0 gaps/,
    );
    expect(() => encodeRecord("turn", withLogprobs([-1, -2], [{ index: 0, was: "null" }]))).toThrowError(
      /marked missing but has a value/,
    );
    expect(() => encodeRecord("turn", withLogprobs([Number.NEGATIVE_INFINITY]))).toThrowError(
      /not finite values are stored as NaN/,
    );
    expect(roundTrip(turn("a", ids(1, 1), ids(1, 2), 0, { logprobs: null })).logprobs).toBeNull();
  });
});

const EMPTY = { sampled_ids: ids(0, 0), weight_versions: [] } satisfies Partial<TurnRecord>;

it("a turn of an answer without a token is a turn (O.103)", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 0, cached_tokens: null };
  for (const logprobs of [null, new Float32Array(0)]) {
    const record: TurnRecord = { ...turn("a", ids(1, 3), ids(5, 4)), ...EMPTY, logprobs, usage };
    expect(roundTrip(record)).toEqual(record);
  }
});

describe("a turn that does not mean what it says is refused on both sides", () => {
  const base = (): TurnRecord => turn("a", ids(1, 3), ids(5, 4));
  it.each<[string, Partial<TurnRecord>, RegExp]>([
    ["fewer log probabilities than ids", { logprobs: Float32Array.of(-1) }, /1 log probabilities for 4 sampled ids/],
    ["no sampled id where some are counted", { ...EMPTY, logprobs: null }, /counts 4 of them/],
    ["no prompt id", { prompt_suffix: ids(0, 0) }, /at least one prompt id/],
    [
      "weight versions with a hole",
      {
        weight_versions: [
          { version: "v", start: 0, end: 1 },
          { version: "w", start: 2, end: 4 },
        ],
      },
      /does not follow 1/,
    ],
    ["weight versions that stop early", { weight_versions: [{ version: "v", start: 0, end: 3 }] }, /cover 3 of 4/],
    ["float64 for what fits float32", { logprobs: Float64Array.of(-1, -1, -1, -1) }, /all fit float32/],
    [
      "gaps where there are no log probabilities",
      { logprobs: null, logprob_gaps: [{ index: 0, was: "" }] },
      /not there/,
    ],
    ["an unknown lane", { lane: "other" as never }, /lane is not main, compaction/],
    ["a name that is too long", { call_id: "x".repeat(2000) }, /call_id is not text/],
    ["a digest of another length", { prompt_sha256: new Uint8Array(31) }, /prompt_sha256 is not 32 bytes/],
    ["a negative count", { messages_keep: -1 }, /messages_keep is not a whole number/],
    ["a wrong role", { message: { role: "robot" as never } }, /message.role is not one of/],
    ["sampling that nests without end", { sampling: nested(40) }, /data of bounded depth/],
  ])("%s", (_what, change, message) => {
    expect(() => encodeRecord("turn", { ...base(), ...change })).toThrowError(message);
  });

  it("absent, null and empty content are kept apart", () => {
    for (const message of [
      { role: "assistant" as const },
      { role: "assistant" as const, content: null },
      { role: "assistant" as const, content: "" },
    ]) {
      expect(roundTrip({ ...base(), message }).message).toEqual(message);
      expect("content" in roundTrip({ ...base(), message }).message).toBe("content" in message);
    }
  });

  it("unknown keys are skipped when read, and the place of a problem is in its message", () => {
    const payload = Buffer.from(encodeRecord("gap", { call_id: null, reason: "r", at_ms: 1 }));
    const wider = Buffer.concat([Buffer.from([0x84]), payload.subarray(1), Buffer.from("a66675747572659101", "hex")]);
    expect(decodeRecord(RecordType.gap, wider, "x")).toEqual({
      name: "gap",
      record: { call_id: null, reason: "r", at_ms: 1 },
    });
    expect(() => decodeRecord(RecordType.commit, payload, "journal.seg offset 12 record 3")).toThrowError(
      /^journal.seg offset 12 record 3: commit: commit is not a whole number/,
    );
    expect(decodeRecord(0x80, payload, "x")).toBeNull();
    expect(() => decodeRecord(0x7f, payload, "x")).toThrowError(/unknown record type 0x7f/);
  });
});

describe("the short way to read a record", () => {
  const message = fc.record(
    {
      role: fc.constantFrom("user", "tool"),
      content: fc.oneof(fc.string(), fc.constant(null)),
      name: fc.string(),
      reasoning: fc.string(),
    },
    { requiredKeys: ["role"] },
  ) as fc.Arbitrary<TurnRecord["message"]>;
  const payloads = fc
    .record({
      messages_new: fc.array(message, { maxLength: 20 }),
      message,
      malformed: fc.boolean(),
      stop_reason: fc.oneof(fc.string(), fc.nat(), fc.constant(null)),
    })
    .map((more) => Buffer.from(encodeRecord("turn", turn("a", ids(1, 5), ids(9, 3), 2, more))));

  it("is open to every record as we write it, and gives what the long way gives", () => {
    fc.assert(
      fc.property(payloads, (payload) => {
        expect(takeRecord("turn", payload)).toStrictEqual(RECORD_FIELDS.turn.read(unpackPayload(payload, "x"), ""));
      }),
    );
  });

  it("never takes what the long way refuses or reads otherwise, whatever byte is changed", () => {
    fc.assert(
      fc.property(payloads, fc.nat(), fc.integer({ min: 0, max: 255 }), (payload, at, byte) => {
        payload[at % payload.length] = byte;
        const taken = takeRecord("turn", payload);
        if (taken !== null) expect(taken).toStrictEqual(RECORD_FIELDS.turn.read(unpackPayload(payload, "x"), ""));
      }),
      { numRuns: 2000 },
    );
  });

  it("is closed to another order of keys, an unknown key and a key that stands twice", () => {
    const payload = Buffer.from(encodeRecord("gap", { call_id: null, reason: "r", at_ms: 1 }));
    expect(takeRecord("gap", payload)).toStrictEqual({ call_id: null, reason: "r", at_ms: 1 });
    const wider = Buffer.concat([Buffer.from([0x84]), payload.subarray(1), Buffer.from("a66675747572659101", "hex")]);
    expect(takeRecord("gap", wider)).toBeNull();
    const call = payload.subarray(1, 10);
    const twice = Buffer.concat([Buffer.from([0x84]), call, payload.subarray(1)]);
    expect(takeRecord("gap", twice)).toBeNull();
    expect(takeRecord("gap", Buffer.concat([payload.subarray(0, 1), payload.subarray(10), call]))).toBeNull();
  });
});

function nested(depth: number): Record<string, unknown> {
  return depth === 0 ? {} : { a: nested(depth - 1) };
}
