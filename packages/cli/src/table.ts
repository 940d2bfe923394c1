/** Tables for people: columns as wide as their widest cell, numbers to the right, nothing cut off. */

export interface Column {
  title: string;
  align?: "left" | "right";
}

/** Rows of text under a header line. An empty table is its header alone. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        return column.align === "right" ? cell.padStart(widths[index]!) : cell.padEnd(widths[index]!);
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map((column) => column.title)), ...rows.map(line)].join("\n");
}

/** 1234567 → "1,234,567". */
export function formatCount(value: number): string {
  return value.toLocaleString("en-US");
}
