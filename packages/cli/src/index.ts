/**
 * @tito/cli owns the `tito` command: flags, progress, tables, exit codes.
 * It never has logic of its own: every command calls one function of another package.
 */
export {};
