import { convertToRuntimeValues } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "../../src/families/families.js";
import { ChatTemplate } from "../../src/template/chat-template.js";
import { tryLosslessJson } from "../../src/template/lossless-json.js";
import { openByteRenderer } from "../byte-bundles.js";

const VALUES = '{"none":null,"text":"abc","yes":true,"list":[1,2.0],"named":{"items":5,"get":1}}';

/** What jinja2 3.1.6 prints, in the environment that transformers 5.24.0 makes; null where it refuses. */
const EXPRESSIONS: [expression: string, printed: string | null][] = [
  ["absent.member", null],
  ["absent['member']", null],
  ["d.absent.member", null],
  ["d.none.member.deeper", null],
  ["absent.member is defined", null],
  ["absent.member | default('x')", null],
  ["d.list[10].member", null],
  ["d.none.member", ""],
  ["d.absent is defined", "False"],
  ["absent == none", "False"],
  ["d.absent != none", "True"],
  ["absent == also_absent", "True"],
  ["'1' == 1", "False"],
  ["'' == none", "False"],
  ["0 == ''", "False"],
  ["1 == 1.0", "True"],
  ["true == 1", "True"],
  ["d.list == [1, 2]", "True"],
  ["{'a': [1]} == {'a': [1.0]}", "True"],
  ["'a' + 1", null],
  ["1 + 'a'", null],
  ["d.text + d.none", null],
  ["'a' ~ absent ~ d.none ~ d.yes ~ 1.0 ~ d.list", "aNoneTrue1.0[1, 2.0]"],
  ["-7 % 3", "2"],
  ["d.named.items() | length", "2"],
  ["d.named['items']", "5"],
  ["d.named.get('get')", "1"],
];

describe("values in templates", () => {
  const values = tryLosslessJson(VALUES);

  it.each(EXPRESSIONS)("{{ %s }} is what Python prints", (expression, printed) => {
    const template = new ChatTemplate(`{{ ${expression} }}`, {}, "2026-11-30");
    const render = () => template.render(new Map([["d", convertToRuntimeValues(values)]])).join("");
    if (printed === null) expect(render).toThrow(expect.objectContaining({ code: "bad_request" }));
    else expect(render()).toBe(printed);
  });

  it.each(Object.keys(FAMILIES))(
    "arguments and parameters that are called as Python's methods are render like others (%s)",
    async (family) => {
      const renderer = await openByteRenderer(family);
      const text = (name: string): string => {
        const parameters = `{"type":"object","properties":{"${name}":{"type":"array","items":{"type":"string"}}}}`;
        const { ids } = renderer.render(
          [
            { role: "user", content: "q" },
            { role: "assistant", content: "", tool_calls: [{ id: "a", name: "f", arguments: `{"${name}":["v"]}` }] },
            { role: "tool", tool_call_id: "a", content: "r" },
          ],
          [{ name: "f", description: "d", parameters }],
        );
        return renderer.decode(ids);
      };
      for (const name of ["items", "keys", "values", "get"])
        expect(text(name)).toBe(text("plain").replaceAll("plain", name));
    },
  );
});
