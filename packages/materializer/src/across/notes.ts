/**
 * What a long command has finished, in a file that it can go on from: one JSON line `{key, value}` a finished piece of work.
 * A line that a kill cut off is left out, and its work is done again. I/O edge.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { TitoError } from "@tito/format";

export class Notes<T> {
  private readonly known = new Map<string, T>();

  /** `file` null: nothing is kept. Errors: `cannot_write`, `usage` for a file that holds something else. */
  constructor(
    private readonly file: string | null,
    private readonly parse: (value: unknown) => T | null,
  ) {
    if (file === null || !existsSync(file)) return;
    const text = readFileSync(file, "utf8");
    for (const line of text.split("\n")) this.take(line);
    if (text.trim() !== "" && this.known.size === 0 && !text.startsWith('{"key":'))
      throw new TitoError("usage", `${file} holds no notes of this command`, { hint: "name a new file" });
    // Behind a line that was cut off the next one must begin on its own.
    if (text !== "" && !text.endsWith("\n")) this.append("\n");
  }

  private take(line: string): void {
    if (line === "") return;
    try {
      const parsed: unknown = JSON.parse(line);
      if (typeof parsed !== "object" || parsed === null || !("key" in parsed) || !("value" in parsed)) return;
      const value = this.parse(parsed.value);
      if (typeof parsed.key === "string" && value !== null) this.known.set(parsed.key, value);
    } catch {
      // Cut off by a kill.
    }
  }

  get(key: string): T | undefined {
    return this.known.get(key);
  }

  put(key: string, value: T): void {
    if (this.file !== null) this.append(`${JSON.stringify({ key, value })}\n`);
  }

  private append(text: string): void {
    try {
      appendFileSync(this.file!, text);
    } catch (cause) {
      throw new TitoError("cannot_write", `cannot write ${this.file}: ${String(cause)}`, { cause });
    }
  }
}
