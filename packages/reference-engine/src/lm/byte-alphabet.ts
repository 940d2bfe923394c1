/** The printable character that GPT-2's byte-level BPE uses for each byte: printable Latin-1 stands for itself, the rest follow from U+0100. */
export const CHARACTER_OF_BYTE: readonly string[] = alphabet();

/** The inverse of {@link CHARACTER_OF_BYTE}. */
export const BYTE_OF_CHARACTER: ReadonlyMap<string, number> = new Map(
  CHARACTER_OF_BYTE.map((character, byte) => [character, byte]),
);

function alphabet(): string[] {
  let moved = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    return String.fromCodePoint(printable ? byte : 0x100 + moved++);
  });
}

/** UTF-8 bytes of the text, one alphabet character a byte. */
export function toByteCharacters(text: string): string {
  let out = "";
  for (const byte of new TextEncoder().encode(text)) out += CHARACTER_OF_BYTE[byte];
  return out;
}
