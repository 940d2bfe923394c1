/** Python's `str.strip()`: its white space is not this runtime's, which has U+FEFF and lacks U+001C to U+001F and U+0085. */
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const AT_START = new RegExp(`^${SPACE}+`, "u");
const AT_END = new RegExp(`(?<!${SPACE})${SPACE}+$`, "u");

export const pythonStripEnd = (text: string): string => text.replace(AT_END, "");
export const pythonStrip = (text: string): string => pythonStripEnd(text.replace(AT_START, ""));
