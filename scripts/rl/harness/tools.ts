/** The demo's tools on a map instead of a directory; the rules are those of fixtures/demo/pi-tools.mjs. */

const EXPRESSION = /^(\d{1,9})([+-])(\d{1,9})$/;
const FILE_NAME = /^[a-z]{1,16}\.txt$/;
const TEXT_LENGTH_MAX = 200;

/** Runs one tool call; what a tool cannot do it answers with "error". */
export function useTool(name: string, args: Readonly<Record<string, unknown>>, files: Map<string, string>): string {
  switch (name) {
    case "calc":
      return calculate(String(args.expression));
    case "save":
      return save(String(args.name), String(args.text), files);
    default:
      return "error";
  }
}

function calculate(expression: string): string {
  const parts = EXPRESSION.exec(expression);
  if (parts === null) return "error";
  const [left, right] = [Number(parts[1]), Number(parts[3])];
  return String(parts[2] === "+" ? left + right : left - right);
}

function save(name: string, text: string, files: Map<string, string>): string {
  if (!FILE_NAME.test(name) || text.length > TEXT_LENGTH_MAX) return "error";
  files.set(name, text);
  return "saved";
}
