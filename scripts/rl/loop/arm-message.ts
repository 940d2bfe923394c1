import type { HeldOut, IterationRow } from "./iteration-row.js";

/** What an arm's program tells the demo. */
export type ArmMessage =
  | { readonly type: "row"; readonly row: IterationRow }
  | { readonly type: "held_out"; readonly version: number; readonly heldOut: HeldOut }
  | { readonly type: "failed"; readonly error: string; readonly cannotResume: boolean };
