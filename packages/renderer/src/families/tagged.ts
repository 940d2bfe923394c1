/** Families whose calls are tags with one element per argument: their grammars and parsers. */

import { pythonStrip } from "../template/python-strip.js";
import { type ContentForm, parseMarkedCalls, THINK, TOOL_CALL } from "./hermes.js";
import type { Parse } from "./output.js";
import { readTagCalls, type TagGrammar } from "./tag-calls.js";

interface Marks {
  open: string;
  close: string;
}

const asIs = (text: string): string => text;

const tagged =
  (grammar: TagGrammar, call: Marks, think: Marks | null, form: ContentForm): Parse =>
  (spans, context) =>
    parseMarkedCalls(spans, context, form, { think, call }, (body) => readTagCalls(body, grammar, context.tools));

const QWEN_GRAMMAR: TagGrammar = {
  call: { open: "<function=", name_end: ">\n", close: "</function>" },
  parameter: { open: "<parameter=", key_end: ">\n", value_open: "", close: "\n</parameter>" },
  typed: false,
};
export const qwen3Coder = tagged(QWEN_GRAMMAR, TOOL_CALL, null, { lead: "keep", before_call: "\n\n" });
export const qwen35 = tagged(QWEN_GRAMMAR, TOOL_CALL, THINK, {
  reasoning: pythonStrip,
  lead: "trim",
  before_call: "\n\n",
});

const GLM_GRAMMAR: TagGrammar = {
  call: { open: "", name_end: "", close: "" },
  parameter: { open: "<arg_key>", key_end: "</arg_key>", value_open: "<arg_value>", close: "</arg_value>" },
  typed: false,
};
export const GLM_MARKS = ["<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"];
export const glm = tagged(GLM_GRAMMAR, TOOL_CALL, THINK, { reasoning: pythonStrip, lead: "trim", before_call: "" });
/** GLM 5.3 prints reasoning with the white space that it has. */
export const glm53 = tagged(GLM_GRAMMAR, TOOL_CALL, THINK, { reasoning: asIs, lead: "trim", before_call: "" });

const MINIMAX_GRAMMAR: TagGrammar = {
  call: { open: '<invoke name="', name_end: '">', close: "</invoke>" },
  parameter: { open: '<parameter name="', key_end: '">', value_open: "", close: "</parameter>" },
  typed: false,
};
export const MINIMAX_CALL: Marks = { open: "<minimax:tool_call>", close: "</minimax:tool_call>" };
export const minimaxM2 = tagged(MINIMAX_GRAMMAR, MINIMAX_CALL, THINK, { lead: "cut_breaks", before_call: "\n" });

const DSML_GRAMMAR: TagGrammar = {
  call: { open: '<｜DSML｜invoke name="', name_end: '">', close: "</｜DSML｜invoke>" },
  parameter: { open: '<｜DSML｜parameter name="', key_end: '"', value_open: "", close: "</｜DSML｜parameter>" },
  typed: true,
};
export const DSML_V32: Marks = { open: "<｜DSML｜function_calls>", close: "</｜DSML｜function_calls>" };
export const DSML_V4: Marks = { open: "<｜DSML｜tool_calls>", close: "</｜DSML｜tool_calls>" };
const DSML_FORM: ContentForm = { reasoning: asIs, lead: "keep", before_call: "\n\n" };
export const deepseekV32 = tagged(DSML_GRAMMAR, DSML_V32, THINK, DSML_FORM);
export const deepseekV4 = tagged(DSML_GRAMMAR, DSML_V4, THINK, DSML_FORM);
