// This runtime's side of nfc.py: how it normalizes every code point alone, beside combining marks, doubled, and decomposed.
const ACUTE = "\u0301"; // combining class 230
const DOT_BELOW = "\u0323"; // combining class 220
const lines = [];
for (let code = 0x80; code <= 0x10ffff; code++) {
  if (code >= 0xd800 && code <= 0xdfff) continue;
  const char = String.fromCodePoint(code);
  const texts = [char, `e${char}${ACUTE}`, `e${char}${DOT_BELOW}`, `${char}${ACUTE}`, `${char}${char}`, char.normalize("NFD")];
  lines.push(JSON.stringify(texts.map((text) => [text, text.normalize("NFC")])));
}
process.stdout.write(`${lines.join("\n")}\n`);
