/** The sidecar's own list of flags as commander options, so that help, parsing and the child's command line come from one list. */
import { type FlagSpec, type FlagValues, SIDECAR_FLAGS } from "@tito/sidecar";
import { type Command, Option } from "commander";

/** Adds the flags of `tito sidecar` (and those that only `tito run` has). */
export function addSidecarFlags(command: Command, options: { run: boolean }): void {
  for (const flag of SIDECAR_FLAGS) {
    if (flag.runOnly === true && !options.run) continue;
    command.addOption(optionOf(flag));
  }
}

function optionOf(flag: FlagSpec): Option {
  const required = flag.required === true ? " (required)" : "";
  const text = flag.value === null ? `--${flag.name}` : `--${flag.name} <${flag.value}>`;
  const option = new Option(text, `${flag.description}${flag.repeat === true ? "; repeatable" : ""}${required}`);
  if (flag.internal === true) option.hideHelp();
  if (flag.value !== null)
    option.argParser((value: string, earlier: string[] | undefined) => [...(earlier ?? []), value]);
  return option;
}

/** What commander parsed, as the sidecar takes it. Flags that are not the sidecar's stay out. */
export function flagValues(parsed: Readonly<Record<string, unknown>>): FlagValues {
  const values = new Map<string, readonly string[]>();
  for (const flag of SIDECAR_FLAGS) {
    const value = parsed[camelCase(flag.name)];
    if (Array.isArray(value)) values.set(flag.name, value.map(String));
    else if (value === true) values.set(flag.name, [""]);
  }
  return values;
}

function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
