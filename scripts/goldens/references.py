"""The reference tokenizers that the goldens are made with: Hugging Face tokenizers, and tiktoken for Kimi, whose vendor's code uses that."""
import base64
import json

import tiktoken
from tokenizers import Tokenizer

KIMI_PATTERN = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])


def kimi_encoding(model):
    """A tiktoken.model as Kimi's tokenization code reads it: the named tokens are special, none of them is looked for in values."""
    ranks = {base64.b64decode(text): int(rank) for text, rank in (line.split() for line in model.read_bytes().splitlines() if line)}
    decoder = json.loads((model.parent / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    return tiktoken.Encoding("kimi", pat_str=KIMI_PATTERN, mergeable_ranks=ranks, special_tokens={token["content"]: int(number) for number, token in decoder.items()})


def reference_ids(path, texts):
    """Library and its version, and the ids per mode."""
    if path.name == "tiktoken.model":
        encoding = kimi_encoding(path)
        return {"tiktoken": tiktoken.__version__}, {"trusted": [encoding.encode(t, allowed_special="all") for t in texts], "value": [encoding.encode_ordinary(t) for t in texts]}
    ids = {}
    for mode in ("trusted", "value"):
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.encode_special_tokens = mode == "value"
        ids[mode] = [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
    return {"tokenizers": "0.23.2"}, ids


def encoder(path):
    """What gives the reference's ids of template text; None without a path."""
    if path is None:
        return None
    if path.name == "tiktoken.model":
        encoding = kimi_encoding(path)
        return lambda text: encoding.encode(text, allowed_special="all")
    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
