"""Which characters the reference's NFC (tokenizers, Rust tables) treats otherwise than this runtime's newer tables.

The runtime's side comes as JSON lines on standard input: [code point, [text, nfc(text)] ...]. Every code point of a text whose result differs, and that
is not one of the fixed probe characters, is printed as ranges for packages/renderer/src/tokenizer/nfc.ts.

    node scripts/goldens/nfc.mjs | python scripts/goldens/nfc.py
"""
import json
import sys

from tokenizers.normalizers import NFC

PROBES = set("e\u0301\u0323")
nfc = NFC()
differing = set()
for line in sys.stdin:
    for text, expected in json.loads(line):
        if nfc.normalize_str(text) != expected:
            differing.update(ord(char) for char in text if char not in PROBES)

ranges = []
for code in sorted(differing):
    if ranges and ranges[-1][1] == code - 1:
        ranges[-1][1] = code
    else:
        ranges.append([code, code])
print(len(differing), "characters")
print("".join(f"\\u{{{a:x}}}" + (f"-\\u{{{b:x}}}" if b > a else "") for a, b in ranges))
