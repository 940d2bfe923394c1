/** Values that no engine should be asked with: each dialect refuses them itself, by name, whatever the engine would make of them. */
import { TitoError } from "@tito/format";
import { describe, expect, it } from "vitest";
import { codecOf } from "../../src/dialect/dialects.js";

const HELLO = [{ role: "user", content: "hello" }];
const BODIES = {
  chat: { messages: HELLO },
  responses: { input: HELLO },
  messages: { messages: HELLO, max_tokens: 5 },
};
type Name = keyof typeof BODIES;
const LIMITS: Record<Name, string[]> = {
  chat: ["max_tokens", "max_completion_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};
const NAMES = Object.keys(BODIES) as Name[];

const parse = (dialect: Name, fields: object) =>
  codecOf(dialect).parse(Buffer.from(JSON.stringify({ ...BODIES[dialect], ...fields })));

function refusal(dialect: Name, fields: object): string {
  try {
    parse(dialect, fields);
  } catch (error) {
    if (TitoError.is(error)) return `${error.code} ${error.message}`;
    throw error;
  }
  return "accepted";
}

describe("a value that means nothing", () => {
  it.each([0, -1, 1.5, "5", [5]])(
    "(a limit of %j output tokens) is refused as such, not as an overflow (O.7)",
    (value) => {
      for (const name of NAMES) {
        for (const field of LIMITS[name]) {
          expect([name, refusal(name, { [field]: value })]).toEqual([
            name,
            expect.stringMatching(`^bad_request ${field}\\b`),
          ]);
          expect(refusal(name, { [field]: 1 })).toBe("accepted");
        }
      }
    },
  );

  it.each(["temperature", "top_p", "top_k", "seed"])(
    "(%s as text) is refused, not replaced by a default (O.7)",
    (field) => {
      for (const name of NAMES) {
        for (const value of ["1", true, {}]) {
          const refused = [name, expect.stringMatching(`^bad_request ${field}\\b`)];
          expect([name, refusal(name, { [field]: value })]).toEqual(refused);
        }
        expect(parse(name, { [field]: null }).sampling).toEqual({});
      }
    },
  );

  it("(no message at all) is refused, not answered (O.7)", () => {
    expect(refusal("chat", { messages: [] })).toMatch(/^bad_request messages/);
    expect(refusal("messages", { messages: [] })).toMatch(/^bad_request messages/);
    expect(refusal("messages", { messages: undefined })).toMatch(/^bad_request messages/);
    expect(refusal("responses", { input: [] })).toMatch(/^bad_request input/);
  });

  it("(a stop sequence that is no text) is refused, not dropped (O.7)", () => {
    expect(refusal("messages", { stop_sequences: ["a", 5] })).toMatch(/^bad_request stop_sequences\[1\]/);
    expect(refusal("chat", { stop: ["a", 5] })).toMatch(/^bad_request stop/);
  });
});

it.each(["logit_bias", "bad_words", "stop_token_ids", "response_format"])("an empty %s constrains nothing", (field) => {
  for (const value of [{}, [], null]) expect([...parse("chat", { [field]: value }).constraints!.keys()]).toEqual([]);
});
