/**
 * Server-sent events from bytes (WHATWG HTML, "Server-sent events"): any chunk boundary, also inside a line ending or a character.
 * Comments are dropped; an event without data is none.
 */
import { TitoError } from "@tito/format";

const LINE_END = /[\r\n]/;
const EVENT_CHARS_MAX = 64 * 1024 * 1024;

/** Push bytes in, get the data of the events that they complete. */
export class SseParser {
  private readonly decoder = new TextDecoder("utf-8");
  /** What came behind the last line end. A long line comes in many pieces: they are joined once, when its end is there. */
  private pieces: string[] = [];
  private pieceChars = 0;
  /** The last piece ends with a CR, which may be half of a CRLF. */
  private halfEnd = false;
  private data: string[] = [];
  private dataChars = 0;

  /** @throws TitoError `upstream_invalid` when one event is larger than 64 Mi characters. */
  push(chunk: Uint8Array): string[] {
    const text = this.decoder.decode(chunk, { stream: true });
    if (this.halfEnd || LINE_END.test(text)) return this.take(this.join(text), false);
    this.keep(text);
    return [];
  }

  /** The end of the stream. An event that was not closed by a blank line is incomplete and is dropped, as the standard says. */
  end(): string[] {
    return this.take(this.join(this.decoder.decode()), true);
  }

  private join(text: string): string {
    const joined = this.pieces.join("") + text;
    this.pieces = [];
    this.pieceChars = 0;
    return joined;
  }

  private keep(text: string): void {
    this.pieces.push(text);
    this.pieceChars += text.length;
    if (this.pieceChars + this.dataChars > EVENT_CHARS_MAX) {
      throw new TitoError("upstream_invalid", `the engine sent an event of more than ${EVENT_CHARS_MAX} characters`);
    }
  }

  private take(text: string, final: boolean): string[] {
    const events: string[] = [];
    const carriages = text.includes("\r");
    let start = 0;
    for (;;) {
      const end = carriages ? lineEnd(text, start) : newline(text, start);
      if (end === null) break;
      // A CR at the very end may be half of a CRLF.
      if (end.at + 1 === text.length && text[end.at] === "\r" && !final) break;
      this.line(text.slice(start, end.at), events);
      start = end.next;
    }
    this.keep(text.slice(start));
    this.halfEnd = text.endsWith("\r");
    return events;
  }

  private line(line: string, events: string[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push(this.data.join("\n"));
      this.data = [];
      this.dataChars = 0;
      return;
    }
    if (!line.startsWith("data")) return;
    if (line.length > 4 && line[4] !== ":") return;
    const value = line.slice(line[5] === " " ? 6 : 5);
    this.data.push(value);
    this.dataChars += value.length;
  }
}

function newline(text: string, from: number): { at: number; next: number } | null {
  const at = text.indexOf("\n", from);
  return at < 0 ? null : { at, next: at + 1 };
}

/** In a text that has carriage returns, which end lines too. */
function lineEnd(text: string, from: number): { at: number; next: number } | null {
  const newline = text.indexOf("\n", from);
  const to = newline < 0 ? text.length : newline;
  const carriage = text.slice(from, to).indexOf("\r");
  if (carriage >= 0) {
    const at = from + carriage;
    return { at, next: text[at + 1] === "\n" ? at + 2 : at + 1 };
  }
  return newline < 0 ? null : { at: newline, next: newline + 1 };
}
