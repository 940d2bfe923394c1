import { TitoError } from "@tito/format";
import { formatCount, renderTable } from "../table.js";
import { given, keyValues, type Register } from "./command.js";

interface BundleFlags {
  from: string;
  template?: string;
  family: string;
  out: string;
  date?: string;
  templateArg?: Record<string, string>;
  json?: boolean;
}

/** `tito bundle`: a renderer bundle from a model's own files. */
export const registerBundle: Register = (program) => {
  program
    .command("bundle")
    .summary("make a renderer bundle from a model's tokenizer and chat template")
    .description(
      "Makes the directory that --renderer takes: tokenizer, special tokens, chat template, family and their digests. The bundle's digest is stored with every turn as its renderer contract.",
    )
    .requiredOption("--from <path>", "a model directory in Hugging Face's layout, or a tokenizer.json")
    .requiredOption("--family <name>", "model family; a wrong name lists those that are known")
    .requiredOption("--out <dir>", "directory to make; must not exist")
    .option("--template <file>", "chat template (default: the model directory's own)")
    .option("--date <YYYY-MM-DD>", "what a template that prints a date takes for today (default: today)")
    .option(
      "--template-arg <K=V>",
      "argument of every rendering, such as enable_thinking=false (repeatable)",
      keyValues("--template-arg"),
    )
    .option("--json", "print the contract id and the manifest as JSON")
    .action(async (flags: BundleFlags) => {
      const { makeBundle } = await import("@tito/renderer");
      const { json, templateArg, ...rest } = flags;
      const templateArguments = templateArg === undefined ? undefined : readArguments(templateArg);
      const { contractId, manifest } = await makeBundle({ ...rest, ...given({ templateArguments }) });
      if (json === true) {
        console.log(JSON.stringify({ renderer_contract: contractId, bundle: flags.out, manifest }));
        return;
      }
      const rows = Object.entries(manifest.files).map(([name, { bytes }]) => [name, formatCount(bytes)]);
      console.log(renderTable([{ title: "file" }, { title: "bytes", align: "right" }], rows));
      console.log(
        `\n${flags.out}: family ${manifest.family}, date ${manifest.date}\nrenderer contract ${contractId}\n\nNext: tito certify ${flags.out}   (only incremental mode needs it)`,
      );
    });
};

/** `true`, `false`, `null` and numbers are what they look like; everything else is text. */
function readArguments(values: Record<string, string>): Record<string, string | number | boolean | null> {
  const entries = Object.entries(values).map(([name, text]): [string, string | number | boolean | null] => {
    if (text === "") throw new TitoError("usage", `--template-arg ${name}: no value`);
    if (/^(?:true|false|null|-?\d+(?:\.\d+)?)$/.test(text)) return [name, JSON.parse(text)];
    return [name, text];
  });
  return Object.fromEntries(entries);
}
