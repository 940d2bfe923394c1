/** Path patterns of rules: `*` within a name, `**` across directories, `?` one character. Pure. */

export function matchesGlob(path: string, pattern: string): boolean {
  return compileGlob(pattern).test(path);
}

function compileGlob(pattern: string): RegExp {
  const source = pattern.replace(/\*\*\/?|\*|\?|[\\^$.|+()[\]{}]/g, (part) => {
    if (part === "**/") return "(?:[^/]+/)*";
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    return `\\${part}`;
  });
  return new RegExp(`^${source}$`);
}
