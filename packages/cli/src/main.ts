/** The `tito` command. */
export {};
