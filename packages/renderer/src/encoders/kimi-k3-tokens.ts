/** Marks of Kimi K3, each one token. */
export const K3_TOKENS = { open: "<|open|>", close: "<|close|>", sep: "<|sep|>", end: "<|end_of_msg|>" };
