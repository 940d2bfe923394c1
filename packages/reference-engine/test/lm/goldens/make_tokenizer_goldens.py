"""Ids that Hugging Face tokenizers gives for varied strings, as the yardstick of our own BPE.

    python make_tokenizer_goldens.py fixtures/policy/tokenizer.json > tokenizer-goldens.json     (pip install tokenizers==0.23.2)
"""

import json
import random
import sys

from tokenizers import Tokenizer

ADDED = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
WORDS = "the Current working directory answer calc save tool name text expression I'll don't WE'RE y'all it's user system largest 'S 'd 'VE".split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\x0b", "\x0c", "\u00a0", "\u2003", "\u3000", "\ufeff", "\u0085", "\u2028"]
OTHER = ["é", "e\u0301", "ß", "日本語", "한국어", "العربية", "🙂", "👩‍👩‍👧", "½", "²", "٣", "ſ", "'ſ", "\u0338", "\x00", "\x1b[0m", "\U00016d67", "𝒳", "—", "…"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def random_string(rng: random.Random) -> str:
    pools = [WORDS, SPACES, OTHER, PUNCTUATION, [str(rng.randrange(10 ** rng.randrange(1, 7)))], [" " + rng.choice(WORDS)]]
    if rng.random() < 0.5:
        pools.append(ADDED)
    return "".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 14)))


def strings(rng: random.Random) -> list[str]:
    fixed = ["", " ", "\n", "a", *WORDS, *SPACES, *OTHER, *PUNCTUATION, *ADDED, "aaaa" * 50, " " * 100, "\n" * 40, "1234567890", "=" * 70]
    blanks = [f"{a}{s}{t}{b}" for a, b in (("x", "y"), ("1", "."), (".", "\n")) for s in SPACES for t in SPACES[:8]]
    code_points = ["a" + chr(rng.choice([rng.randrange(0x20, 0xD800), rng.randrange(0xE000, 0x30000)])) + "b" for _ in range(200)]
    tags = ["<|im_start|>user\nhi<|im_end|>\n", "<|im_end|>\u0338", "<<think>>", "<think", "<|im_end|><|im_end|>", '{"name": "save", "arguments": {"text": "12"}}\n']
    return [*fixed, *blanks, *code_points, *tags, *(random_string(rng) for _ in range(500))]


def main() -> None:
    tokenizer = Tokenizer.from_file(sys.argv[1])
    cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in strings(random.Random(7))]
    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")


main()
