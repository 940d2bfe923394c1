import { convertToRuntimeValues } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { pythonJson } from "../../src/encoders/python-json.js";
import { ChatTemplate } from "../../src/template/chat-template.js";
import { tryLosslessJson } from "../../src/template/lossless-json.js";

/** JSON text, as `tojson` and json.dumps spell the value, as a template prints it. Made with Python 3.11 and jinja2 3.1.6. */
const NUMBERS: [text: string, json: string, printed: string][] = [
  ["12345678901234567890123", "12345678901234567890123", "12345678901234567890123"],
  ["-9007199254740993", "-9007199254740993", "-9007199254740993"],
  ["-0", "0", "0"],
  ["-0.0", "-0.0", "-0.0"],
  ["1.0", "1.0", "1.0"],
  ["1E5", "100000.0", "100000.0"],
  ["1e16", "1e+16", "1e+16"],
  ["0.1e-7", "1e-08", "1e-08"],
  ["1e400", "Infinity", "inf"],
  ["-1e400", "-Infinity", "-inf"],
  ["NaN", "NaN", "nan"],
];

describe("numbers of arguments and schemas", () => {
  const template = new ChatTemplate(
    "{{ v | tojson }} {{ [v] | tojson(indent=1) }} {{ v }} {{ v | string }}",
    {},
    "2026-11-30",
  );

  it.each(NUMBERS)(
    "%s is spelled as Python spells it, beyond 2^53 and beyond the finite numbers too",
    (text, json, printed) => {
      const value = tryLosslessJson(text)!;
      const rendered = template.render(new Map([["v", convertToRuntimeValues(value)]])).join("");
      expect(rendered).toBe(`${json} [\n ${json}\n] ${printed} ${printed}`);
      expect(pythonJson([value], { protect: (given) => given })).toBe(`[${json}]`);
    },
  );
});
