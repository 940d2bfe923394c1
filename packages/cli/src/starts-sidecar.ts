/** True for `tito sidecar …`; help stays with the command tree, which words it. */
export function startsSidecar(args: readonly string[]): boolean {
  return args[0] === "sidecar" && !args.includes("--help") && !args.includes("-h");
}
