import type { Message } from "@tito/format";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { certify } from "../../src/junction/certify.js";
import { canonicalArguments, sameReply } from "../../src/junction/same-reply.js";
import { openChangedRenderer } from "../byte-bundles.js";

const reply = (args: string): Message => ({
  role: "assistant",
  content: "",
  tool_calls: [{ id: "c", name: "f", arguments: args }],
});

describe("O.123 arguments are compared at every depth", () => {
  it.each([
    ['{"a":{"b":1}}', '{"a":{"b":2}}'],
    ['{"a":{"b":1}}', '{"a":{}}'],
    ['{"a":[{"b":null}]}', '{"a":[{"c":null}]}'],
    ['{"a":[[{"b":[{"c":true}]}]]}', '{"a":[[{"b":[{"c":false}]}]]}'],
    ['{"a":{"n":10000000000000001}}', '{"a":{"n":10000000000000000}}'],
    ['{"a":{"n":1}}', '{"a":{"n":1.0}}'],
    ['{"a":{"n":1}}', '{"a":{"n":"1"}}'],
    ['{"a":{"__proto__":1}}', '{"a":{}}'],
    ["not json {", "not json ["],
  ])("%s is not %s", (left, right) => {
    expect(sameReply(reply(left), reply(right))).toBe(false);
  });

  it("and spelling does not matter", () => {
    expect(sameReply(reply('{"a":{"b":1,"c":[{"d":2}]}}'), reply('{ "a" : {"c": [ {"d":2} ], "b": 1} }'))).toBe(true);
  });

  it("two values are equal exactly when their canonical spellings are", () => {
    const value = fc.jsonValue({ maxDepth: 4 }).filter((one) => one !== null);
    fc.assert(
      fc.property(value, value, (a, b) => {
        const sorted = (one: unknown): unknown => {
          if (Array.isArray(one)) return one.map(sorted);
          if (typeof one !== "object" || one === null) return one;
          return Object.entries(one)
            .sort()
            .map(([key, member]) => [key, sorted(member), "member"]);
        };
        const same = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(canonicalArguments(JSON.stringify(a)) === canonicalArguments(JSON.stringify(b))).toBe(same);
        expect(canonicalArguments(JSON.stringify(a, null, 2))).toBe(canonicalArguments(JSON.stringify(a)));
      }),
    );
  });

  it("so that a template which rewrites a nested value is not certified", async () => {
    const planted = (text: string): string =>
      text.replace("tool_call.arguments | tojson", `(tool_call.arguments | tojson).replace('"b": null', '"b": 0')`);
    const { shapes, refused } = certify(await openChangedRenderer("qwen3", { template: planted }), {
      conversations: 20,
    });
    expect(Object.keys(shapes)).not.toContain("tool_result");
    expect(refused.find((refusal) => refusal.shape === "tool_result")?.why).toMatch(/drops or rewrites/);
  });
});
