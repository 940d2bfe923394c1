/** Tables for people: columns as wide as their widest cell, numbers to the right, nothing cut off. */

export interface Column {
  title: string;
  align?: "left" | "right";
}

/** Rows of text under a header line. An empty table is its header alone. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(printable));
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...shown.map((row) => (row[index] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        return column.align === "right" ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!);
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...shown.map(line)].join("\n");
}

/** Names come from outside: a control character in one is shown, not obeyed. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** 1234567 → "1,234,567". Without `toLocaleString`, which loads all locales first. */
export function formatCount(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
