/** What every command file has in common. */
import { TitoError } from "@tito/format";
import type { Command } from "commander";

/** Where a command leaves its exit code when it did not fail but has something to say with it. */
export interface Outcome {
  exitCode: number;
}

export type Register = (program: Command, outcome: Outcome) => void;

/** Commander parser for whole numbers; the message names the flag. */
export function wholeNumber(flag: string, min = 0): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < min) {
      throw new TitoError("usage", `${flag}: "${text}" is not a whole number of at least ${min}`);
    }
    return value;
  };
}

/** Commander collector for a repeatable `K=V` flag. */
export function keyValues(
  flag: string,
): (text: string, earlier: Record<string, string> | undefined) => Record<string, string> {
  return (text, earlier) => {
    const at = text.indexOf("=");
    if (at <= 0) throw new TitoError("usage", `${flag}: "${text}" is not of the form KEY=VALUE`);
    return Object.fromEntries([...Object.entries(earlier ?? {}), [text.slice(0, at), text.slice(at + 1)]]);
  };
}

/** Commander collector for a repeatable flag of the form NAME=NUMBER, or the one word `neutral`. */
export function samplingSettings(
  flag: string,
): (text: string, earlier: SamplingSettings | undefined) => SamplingSettings {
  const pairs = keyValues(flag);
  return (text, earlier) => {
    if (text === "neutral" && earlier === undefined) return "neutral";
    if (text === "neutral" || earlier === "neutral")
      throw new TitoError("usage", `${flag}: neutral states every setting; leave the others out`);
    const [[name, value] = ["", ""]] = Object.entries(pairs(text, undefined));
    const number = Number(value);
    if (value.trim() === "" || !Number.isFinite(number))
      throw new TitoError("usage", `${flag} ${name}=${value}: not a number`);
    return Object.fromEntries([...Object.entries(earlier ?? {}), [name, number]]);
  };
}

export type SamplingSettings = "neutral" | Record<string, number>;

/** Commander collector for a repeatable flag. */
export function collect(text: string, earlier: string[] | undefined): string[] {
  return [...(earlier ?? []), text];
}

/** Only the fields that were given: what a package's own defaults must fill stays absent. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
